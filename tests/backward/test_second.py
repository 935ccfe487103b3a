"""Gradients of gradients: against central differences of the first ones."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpValueError
from fluidnb.runtime import Executor, Scope

L = fluid.layers
RNG = np.random.default_rng(5)
X = RNG.uniform(0.4, 1.5, (3, 4))
Y = RNG.uniform(0.4, 1.5, (3, 4))
W = RNG.uniform(-1, 1, (4, 5))
ROW, BATCH, MANY = RNG.uniform(0.5, 1, 4), RNG.uniform(-1, 1, (2, 3, 4)), RNG.uniform(-1, 1, (2, 5, 4))


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def raw(type, x, y, **attrs):
    """An operator that has no layer."""
    out = fluid.default_main_program().global_block().create_var(name=type + "_out", dtype="float64")
    fluid.default_main_program().global_block().append_op(
        type=type, inputs={"X": [x], "Y": [y]}, outputs={"Out": [out]}, attrs=attrs
    )
    return out


FUNCTIONS = {
    "tanh": (L.tanh, X - 1),
    "sigmoid": (L.sigmoid, X - 1),
    "exp": (L.exp, X - 1),
    "log": (L.log, X),
    "sqrt": (L.sqrt, X),
    "rsqrt": (L.rsqrt, X),
    "square": (L.square, X),
    "relu": (lambda x: L.relu(L.elementwise_mul(x, L.tanh(x))), X - 1),
    "leaky_relu": (lambda x: L.leaky_relu(L.elementwise_mul(x, L.tanh(x)), alpha=0.3), X - 1),
    "reduce_sum": (lambda x: L.square(L.reduce_sum(L.square(x), dim=1)), X),
    "reduce_mean": (lambda x: L.square(L.reduce_mean(L.square(x), dim=[0], keep_dim=True)), X),
    "mean": (lambda x: L.exp(L.mean(L.square(x))), X),
    "transpose": (lambda x: L.tanh(L.transpose(L.square(x), [1, 0])), X),
    "reshape": (lambda x: L.tanh(L.reshape(L.square(x), [2, -1])), X),
    "slice": (lambda x: L.tanh(L.slice(L.square(x), axes=[1], starts=[1], ends=[3])), X),
    "expand": (lambda x: L.tanh(L.expand(L.square(x), [2, 1])), X),
    "scale": (lambda x: L.tanh(L.scale(L.square(x), 0.5, 0.1)), X),
    "sums": (lambda x: L.tanh(L.sums([L.square(x), L.exp(x), x])), X - 1),
}
PAIRS = {
    "elementwise_mul": (lambda x, y: L.elementwise_mul(L.square(x), y), X, Y),
    "elementwise_mul_row": (lambda x, y: L.elementwise_mul(L.square(x), L.square(y)), X, ROW),
    "elementwise_add": (lambda x, y: L.square(L.elementwise_add(x, L.square(y))), X, Y),
    "elementwise_add_row": (lambda x, y: L.tanh(L.elementwise_add(x, y)), X, ROW),
    "elementwise_sub": (lambda x, y: L.square(L.elementwise_sub(x, L.square(y))), X, Y),
    "elementwise_sub_row": (lambda x, y: L.tanh(L.elementwise_sub(x, y)), X, ROW),
    "elementwise_sub_axis": (lambda x, y: L.tanh(L.elementwise_sub(x, y, axis=0)), X, ROW[:3]),
    "mul": (lambda x, y: L.tanh(L.mul(x, y)), X, W),
    "matmul": (lambda x, y: L.tanh(L.matmul(x, y, alpha=0.5)), X, W),
    "matmul_batches": (lambda x, y: L.tanh(L.matmul(x, y, transpose_y=True)), BATCH, MANY),
    "matmul_repeated": (lambda x, y: L.tanh(L.matmul(x, y)), BATCH, W),
    "matmul_vector": (lambda x, y: L.tanh(L.matmul(x, y)), X, ROW),
    "matmul_turned": (lambda x, y: L.tanh(L.matmul(x, y, transpose_x=True)), W, np.concatenate([X, ROW[None]])),
    "matmul_v2": (lambda x, y: L.tanh(raw("matmul_v2", x, y, trans_y=True)), X, W.T.copy()),
    "bmm": (lambda x, y: L.tanh(raw("bmm", x, y)), BATCH, MANY.swapaxes(1, 2).copy()),
}


def check(build, arrays):
    """d(sum of c · df/dv) / du for all u and v among the inputs, against differences of df/dv."""
    inputs = [L.data(f"v{i}", list(a.shape), append_batch_size=False, dtype="float64") for i, a in enumerate(arrays)]
    for v in inputs:
        v.stop_gradient = False
    first = fluid.gradients(build(*inputs), inputs)
    weights = [RNG.uniform(-1, 1, a.shape) for a in arrays]
    held = [L.data(f"c{i}", list(a.shape), append_batch_size=False, dtype="float64") for i, a in enumerate(arrays)]
    second = fluid.gradients(first, inputs, held)
    given = {f"c{i}": w for i, w in enumerate(weights)}
    exe, scope = Executor(), Scope()

    def slope(values):
        feed = given | {f"v{i}": a for i, a in enumerate(values)}
        firsts = exe.run(feed=feed, fetch_list=first, scope=scope)
        return sum((g * w).sum() for g, w in zip(firsts, weights, strict=True))

    got = exe.run(feed=given | {f"v{i}": a for i, a in enumerate(arrays)}, fetch_list=second, scope=scope)
    kept = exe.run(
        feed=given | {f"v{i}": a for i, a in enumerate(arrays)}, fetch_list=second, scope=scope, keep_scopes=True
    )
    for i, (have, again) in enumerate(zip(got, kept, strict=True)):
        np.testing.assert_array_equal(have, again)
        assert np.abs(have).max() > 1e-3  # there is something to be wrong about
        for _ in range(3):
            direction = RNG.uniform(-1, 1, arrays[i].shape)
            ends = [slope([a + h * direction if j == i else a for j, a in enumerate(arrays)]) for h in (1e-5, -1e-5)]
            np.testing.assert_allclose((have * direction).sum(), (ends[0] - ends[1]) / 2e-5, 1e-5, 1e-7)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_of_one_input(name):
    build, x = FUNCTIONS[name]
    check(build, [x])


@pytest.mark.parametrize("name", PAIRS)
def test_of_two_inputs(name):
    build, *arrays = PAIRS[name]
    check(build, arrays)


def test_a_penalty_on_the_length_of_a_gradient_trains():
    """As networks are kept smooth: the loss has the gradient with respect to the input in it."""
    fluid.default_startup_program().random_seed = 1
    x = L.data("x", [8, 4], append_batch_size=False)
    x.stop_gradient = False
    score = L.fc(L.fc(x, 16, act="tanh"), 1)
    [slope] = fluid.gradients(score, x)
    length = L.sqrt(L.reduce_sum(L.square(slope), dim=1))
    loss = L.mean(L.square(L.scale(length, bias=-1.0)))
    fluid.optimizer.SGD(0.1).minimize(loss)
    exe, batch = fluid.Executor(fluid.CPUPlace()), np.random.default_rng(0).uniform(-1, 1, (8, 4)).astype("float32")
    exe.run(fluid.default_startup_program())
    losses = [exe.run(feed={"x": batch}, fetch_list=[loss])[0].item() for _ in range(60)]
    assert losses[-1] < 0.2 * losses[0]


def test_only_what_is_wanted_is_computed_again():
    x, w = (L.data(n, [3, 3], append_batch_size=False) for n in "xw")
    [dx] = fluid.gradients(L.mul(x, w), x)
    fluid.gradients(dx, w)
    op = fluid.default_main_program().global_block().ops[-1]
    assert op.type == "mul_grad_grad" and "DDY" not in op.input_names
    assert op.output("DX") == ["@EMPTY@"] and op.output("DDOut") == ["@EMPTY@"]


def test_a_gradient_without_a_gradient_says_so():
    x = L.data("x", [3], append_batch_size=False)
    [dx] = fluid.gradients(L.softmax(L.square(x)), x)
    with pytest.raises(OpValueError, match="softmax_grad has no gradient"):
        fluid.gradients(dx, x)
