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
    "abs": (lambda x: L.tanh(L.abs(x)), X - 1),
    "reciprocal": (L.reciprocal, X),
    "sin": (lambda x: L.square(L.sin(x)), X),
    "cos": (lambda x: L.square(L.cos(x)), X),
    "elu": (lambda x: L.elu(x, alpha=0.7), X - 1),
    "pow": (lambda x: L.pow(x, factor=2.5), X),
    "pow_of_one": (lambda x: L.tanh(L.pow(x, factor=1.0)), X),
    "relu6": (lambda x: L.square(L.relu6(x)), 4 * X),
    "hard_sigmoid": (lambda x: L.square(L.hard_sigmoid(x)), 2 * X),
    "brelu": (lambda x: L.square(L.brelu(x, t_max=1.0)), X),
    "squeeze": (lambda x: L.tanh(L.squeeze(L.square(L.reshape(x, [3, 1, 4])), [1])), X),
    "unsqueeze": (lambda x: L.tanh(L.unsqueeze(L.square(x), [1])), X),
    "flatten": (lambda x: L.tanh(L.flatten(L.square(x), axis=0)), X),
    "layer_norm": (lambda x: L.tanh(L.layer_norm(L.square(x), scale=False, shift=False)), X - 1),
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
    "elementwise_div": (lambda x, y: L.elementwise_div(L.square(x), y), X, Y),
    "elementwise_div_row": (lambda x, y: L.elementwise_div(x, L.square(y)), X, ROW),
    "elementwise_div_axis": (lambda x, y: L.tanh(L.elementwise_div(x, y, axis=0)), X, ROW[:3]),
    "concat": (lambda x, y: L.tanh(L.concat([L.square(x), y, x], axis=1)), X, Y),
    "concat_with_a_constant": (
        lambda x, y: L.tanh(L.concat([L.square(x), L.fill_constant([3, 2], "float64", 0.5), y], axis=1)), X, Y,
    ),
    "mul": (lambda x, y: L.tanh(L.mul(x, y)), X, W),
    "matmul": (lambda x, y: L.tanh(L.matmul(x, y, alpha=0.5)), X, W),
    "matmul_batches": (lambda x, y: L.tanh(L.matmul(x, y, transpose_y=True)), BATCH, MANY),
    "matmul_repeated": (lambda x, y: L.tanh(L.matmul(x, y)), BATCH, W),
    "matmul_vector": (lambda x, y: L.tanh(L.matmul(x, y)), X, ROW),
    "matmul_turned": (lambda x, y: L.tanh(L.matmul(x, y, transpose_x=True)), W, np.concatenate([X, ROW[None]])),
    "matmul_v2": (lambda x, y: L.tanh(raw("matmul_v2", x, y, trans_y=True)), X, W.T.copy()),
    "bmm": (lambda x, y: L.tanh(raw("bmm", x, y)), BATCH, MANY.swapaxes(1, 2).copy()),
}
IMAGE, FILTER = RNG.uniform(-1, 1, (2, 4, 5, 5)), RNG.uniform(-1, 1, (6, 2, 3, 3))
DEPTHS, VOLUME, CUBE = RNG.uniform(-1, 1, (4, 1, 3, 3)), RNG.uniform(-1, 1, (1, 2, 3, 4, 3)), (3, 2, 2, 2, 2)


def conv(type, **attrs):
    """A convolution whose filter is an input of the program."""

    def build(x, w):
        block = fluid.default_main_program().global_block()
        out = block.create_var(name=type + "_out", dtype="float64")
        block.append_op(type=type, inputs={"Input": [x], "Filter": [w]}, outputs={"Output": [out]}, attrs=attrs)
        return L.tanh(out)

    return build


IMAGES = RNG.permutation(2 * 2 * 5 * 6).reshape(2, 2, 5, 6) / 40 - 1


def pool(type="max", **attrs):
    return lambda x: L.tanh(L.pool2d(L.elementwise_mul(x, L.tanh(x)), pool_type=type, **attrs))


POOLS = {
    "max": (pool(pool_size=2, pool_stride=2), IMAGES),
    "max_overlapping": (pool(pool_size=3, pool_stride=2, pool_padding=1, ceil_mode=True), IMAGES),
    "max_global": (pool(global_pooling=True), IMAGES),
    "avg": (pool("avg", pool_size=2, pool_stride=2), IMAGES),
    "avg_padded": (pool("avg", pool_size=3, pool_stride=1, pool_padding=1, exclusive=False), IMAGES),
    "avg_exclusive": (pool("avg", pool_size=3, pool_stride=2, pool_padding=1), IMAGES),
    "avg_global": (pool("avg", global_pooling=True), IMAGES),
    "max_adaptive": (lambda x: L.tanh(L.adaptive_pool2d(L.square(x), [2, 4], "max")), IMAGES),
    "avg_adaptive": (lambda x: L.tanh(L.adaptive_pool2d(L.square(x), [2, 4], "avg")), IMAGES),
    "volume": (lambda x: L.tanh(L.pool3d(L.square(x), 2, "max", 1)), VOLUME),
}


def norm(type, outputs, test=False, **attrs):
    """A normalisation whose factors are inputs of the program."""

    def build(x, scale, bias):
        block = fluid.default_main_program().global_block()
        size = scale.shape[0]
        inputs, outs = {"X": [x], "Scale": [scale], "Bias": [bias]}, {}
        for slot in outputs:
            outs[slot] = [block.create_var(name=f"{type}_{slot}", dtype="float64")]
        if type == "batch_norm":
            for slot, value in (("Mean", 0.1), ("Variance", 0.7)):
                moment = L.fill_constant([size], "float64", value)
                inputs[slot], outs[f"{slot}Out"] = [moment], [moment]
        block.append_op(type=type, inputs=inputs, outputs=outs, attrs=attrs)
        return L.tanh(outs["Y"][0])

    return build


SAVED = ("Y", "SavedMean", "SavedVariance")
BATCHES = (*SAVED, "ReserveSpace")
FEW = X[:, 0], Y[0, :3]
NORMS = {
    "batch_norm": (norm("batch_norm", BATCHES), BATCH.transpose(0, 2, 1)[..., None], ROW, ROW - 0.5),
    "batch_norm_matrix": (norm("batch_norm", BATCHES), X, ROW, ROW - 0.5),
    "batch_norm_channel_last": (norm("batch_norm", BATCHES, data_layout="NHWC"), BATCH[:, None], ROW, ROW - 0.5),
    "batch_norm_running": (norm("batch_norm", BATCHES, use_global_stats=True), BATCH[..., None], *FEW),
    "instance_norm": (norm("instance_norm", SAVED), BATCH[..., None], *FEW),
    "layer_norm_factors": (norm("layer_norm", ("Y", "Mean", "Variance")), X, ROW, ROW - 0.5),
}
CONVOLUTIONS = {
    "conv2d": (conv("conv2d", strides=[2, 1], paddings=[1, 0], groups=2), IMAGE, FILTER),
    "conv2d_dilated": (conv("conv2d", dilations=[2, 1], paddings=[1, 1], groups=2), IMAGE, FILTER),
    "conv2d_channel_last": (conv("conv2d", groups=2, data_format="NHWC"), IMAGE.transpose(0, 2, 3, 1), FILTER),
    "depthwise_conv2d": (conv("depthwise_conv2d", groups=4, paddings=[1, 1]), IMAGE, DEPTHS),
    "conv3d": (conv("conv3d", strides=[1, 2, 1]), VOLUME, RNG.uniform(-1, 1, CUBE)),
    "conv2d_transpose": (conv("conv2d_transpose", strides=[2, 2], paddings=[1, 1], groups=2), IMAGE, FILTER[:4]),
    "depthwise_conv2d_transpose": (conv("depthwise_conv2d_transpose", groups=4), IMAGE, DEPTHS),
    "conv3d_transpose": (conv("conv3d_transpose"), VOLUME, RNG.uniform(-1, 1, (2, 3, 2, 2, 2))),
}


def twice(build, arrays):
    """The slopes df/dv of a function's inputs v0, v1 …, and the slopes of the sum of c0 · df/dv0 and so on."""
    inputs = [L.data(f"v{i}", list(a.shape), append_batch_size=False, dtype="float64") for i, a in enumerate(arrays)]
    for v in inputs:
        v.stop_gradient = False
    first = fluid.gradients(build(*inputs), inputs)
    held = [L.data(f"c{i}", list(a.shape), append_batch_size=False, dtype="float64") for i, a in enumerate(arrays)]
    return first, fluid.gradients(first, inputs, held)


def check(build, arrays):
    """d(sum of c · df/dv) / du for all u and v among the inputs, against differences of df/dv."""
    first, second = twice(build, arrays)
    weights = [RNG.uniform(-1, 1, a.shape) for a in arrays]
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


@pytest.mark.parametrize("name", POOLS)
def test_of_pooling(name):
    build, x = POOLS[name]
    check(build, [x])


@pytest.mark.parametrize("name", NORMS)
def test_of_normalisations(name):
    build, *arrays = NORMS[name]
    check(build, arrays)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_of_convolutions(name):
    build, *arrays = CONVOLUTIONS[name]
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


def test_a_critic_with_convolutions_learns_under_a_gradient_penalty():
    """WGAN-GP: the critic's slope at points between true and made images is held at 1 while it tells them apart."""
    fluid.default_startup_program().random_seed = 3
    true, made = (L.data(name, [8, 1, 6, 6], append_batch_size=False) for name in ("true", "made"))
    share = L.data("share", [8, 1, 1, 1], append_batch_size=False)

    def critic(x):
        for i, filters in enumerate((4, 8)):
            x = L.conv2d(x, filters, 3, stride=2, padding=1, act="leaky_relu",
                         param_attr=f"conv{i}.w", bias_attr=f"conv{i}.b")  # fmt: skip
        return L.fc(x, 1, param_attr="score.w", bias_attr="score.b")

    between = L.elementwise_add(made, L.elementwise_mul(L.elementwise_sub(true, made), L.expand(share, [1, 1, 6, 6])))
    between.stop_gradient = False
    [slope] = fluid.gradients(critic(between), between)
    length = L.sqrt(L.reduce_sum(L.square(slope), dim=[1, 2, 3]))
    penalty = L.mean(L.square(L.scale(length, bias=-1.0)))
    gap = L.elementwise_sub(L.mean(critic(made)), L.mean(critic(true)))
    loss = L.elementwise_add(gap, L.scale(penalty, 10.0))
    fluid.optimizer.Adam(0.02, beta1=0.5).minimize(loss)
    types = [op.type for op in fluid.default_main_program().global_block().ops]
    assert types.count("conv2d_grad_grad") == 2
    exe, rng = fluid.Executor(fluid.CPUPlace()), np.random.default_rng(0)
    exe.run(fluid.default_startup_program())
    results = []
    for _ in range(60):
        feed = {"true": rng.normal(0.5, 0.2, (8, 1, 6, 6)), "made": rng.normal(-0.5, 0.2, (8, 1, 6, 6)),
                "share": rng.uniform(0, 1, (8, 1, 1, 1))}  # fmt: skip
        feed = {name: value.astype("float32") for name, value in feed.items()}
        results.append([v.item() for v in exe.run(feed=feed, fetch_list=[gap, penalty])])
    assert abs(results[0][0]) < 1 and results[-1][0] < -4
    assert max(p for _, p in results[20:]) < 0.5  # without the penalty the slope grows without bound


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


def test_concat_beside_what_has_no_gradient():
    """A critic that gets labels beside its images: labels want no gradient."""

    def build(x):
        label = L.fill_constant([3, 2], "float64", 0.5)
        out = L.tanh(L.concat([label, L.square(x), label], axis=1))
        return out

    check(build, [X])
    types = [op.type for op in fluid.default_main_program().global_block().ops]
    assert types.count("concat_grad_grad") == 1
