"""Decay after clipping, what goes before what, clips by norm, gradients of some rows, and the warnings."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpValueError
from fluidnb.layer_helper import LayerHelper

L, C, R = fluid.layers, fluid.clip, fluid.regularizer


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def parameters(**values):
    """Parameters with these values, and a loss whose gradient by each is 1, 2, 3, …."""
    made = [
        L.create_parameter([len(v)], "float32", name=n, default_initializer=fluid.initializer.NumpyArrayInitializer(
            np.array(v, "float32"))) for n, v in values.items()
    ]  # fmt: skip
    terms = [L.elementwise_mul(p, L.assign(np.arange(1, len(v) + 1, dtype="float32")))
             for p, v in zip(made, values.values(), strict=True)]  # fmt: skip
    return L.sums([L.reduce_sum(t) for t in terms]), made


def step(*names):
    """Parameters after one step."""
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    return exe.run(fetch_list=list(names))


def test_decay_is_added_to_what_clipping_left():
    loss, [w] = parameters(w=[10.0, -20.0])
    w.gradient_clip_attr = C.GradientClipByValue(1.5)
    fluid.optimizer.SGD(0.5, regularization=R.L2Decay(0.1)).minimize(loss)
    [got] = step("w")
    np.testing.assert_allclose(got, [10 - 0.5 * (1 + 1), -20 - 0.5 * (1.5 - 2)], rtol=1e-6)  # not clip(g + 0.1 w)


def test_a_parameters_own_decay_goes_before_the_optimizers():
    loss, [a, b] = parameters(a=[4.0], b=[4.0])
    a.regularizer = R.L1Decay(2.0)
    with pytest.warns(UserWarning, match=r"The regularizer of a goes before the optimizer's L2Decay.*0\.5") as caught:
        ops, _ = fluid.optimizer.SGD(1.0, regularization=R.L2Decay(0.5)).minimize(loss)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert [v.item() for v in step("a", "b")] == [4 - (1 + 2), 4 - (1 + 2.0)]
    assert [op.type for op in ops] == ["sign", "scale", "sum", "scale", "sum", "sgd", "sgd"]


def test_without_an_optimizers_decay_there_is_nothing_to_warn_of():
    loss, [a, b] = parameters(a=[4.0], b=[4.0])
    a.regularizer = R.L2Decay(0.5)
    fluid.optimizer.SGD(1.0).minimize(loss)
    assert [v.item() for v in step("a", "b")] == [4 - 3.0, 3.0]


def test_by_norm_looks_at_each_gradient_alone():
    loss, _ = parameters(a=[0.0, 0.0], b=[0.0, 0.0, 0.0], c=[0.0])
    fluid.optimizer.SGD(1.0).minimize(loss, grad_clip=C.GradientClipByNorm(2.0))
    a, b, c = step("a", "b", "c")
    np.testing.assert_allclose(a, np.array([-1, -2]) * 2 / np.sqrt(5), rtol=1e-6)
    np.testing.assert_allclose(b, np.array([-1, -2, -3]) * 2 / np.sqrt(14), rtol=1e-6)
    np.testing.assert_array_equal(c, [-1])


@pytest.mark.parametrize("clip", [C.GradientClipByNorm, C.GradientClipByGlobalNorm])
@pytest.mark.parametrize("bound", [0, -1.0, float("nan")])
def test_a_bound_is_above_zero(clip, bound):
    with pytest.raises(OpValueError, match="clip_norm must be above 0"):
        clip(bound)


def test_a_clip_that_comes_too_late_says_so():
    loss, [a, b] = parameters(a=[0.0], b=[0.0])
    fluid.optimizer.SGD(1.0).minimize(loss, parameter_list=["a"])
    with pytest.warns(UserWarning, match="minimize has written the update of a already") as caught:
        C.set_gradient_clip(C.GradientClipByValue(0.5))
    assert caught[0].filename == __file__
    C.set_gradient_clip(C.GradientClipByValue(0.5), param_list=[b])


def rows(is_sparse, **kwargs):
    """Three steps that read rows 1, 4 and again 1 of a table; the table, and the operators."""
    with fluid.fresh():
        ids, helper = L.data("ids", [1], dtype="int64"), LayerHelper("embedding")
        table = helper.create_parameter(None, [6, 3], default_initializer=fluid.initializer.Uniform(seed=3))
        out = helper.create_tmp_variable("float32")
        attrs = {"is_sparse": is_sparse}
        helper.append_op("lookup_table", {"Ids": [ids], "W": [table]}, {"Out": [out]}, attrs)
        clip, optimizer = kwargs.get("clip"), kwargs.get("optimizer", fluid.optimizer.SGD)
        optimizer(0.1, regularization=kwargs.get("decay")).minimize(L.mean(L.scale(out, 30.0)), grad_clip=clip)
        exe = fluid.Executor(fluid.CPUPlace())
        exe.run(fluid.default_startup_program())
        for _ in range(3):
            [got] = exe.run(feed={"ids": np.array([[1], [4], [1]])}, fetch_list=[table.name])
        return got, fluid.default_main_program()


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"decay": R.L2Decay(0.1)},
        {"decay": R.L1Decay(0.1)},
        {"clip": C.GradientClipByValue(5.0)},
        {"clip": C.GradientClipByNorm(9.0)},
        {"clip": C.GradientClipByGlobalNorm(9.0)},
        {"clip": C.GradientClipByGlobalNorm(9.0), "decay": R.L2Decay(0.1), "optimizer": fluid.optimizer.Adam},
    ],
    ids=["plain", "l2", "l1", "by_value", "by_norm", "by_global_norm", "adam"],
)
def test_gradients_of_some_rows_are_treated_as_those_of_all(kwargs):
    (dense, _), (sparse, program) = rows(False, **kwargs), rows(True, **kwargs)
    np.testing.assert_allclose(sparse, dense, rtol=1e-6)
    grad = program.global_block().var("embedding_0.w_0@GRAD")
    assert grad.type == fluid.core.VarDesc.VarType.SELECTED_ROWS
    plain = rows(False)[0]
    assert not kwargs or not np.allclose(plain, dense, rtol=1e-3)


def test_every_row_decays():
    table, program = rows(True, decay=R.L2Decay(0.5))
    block = program.global_block()
    whole = block.var("embedding_0.w_0@GRAD@NEWGRAD@")
    assert whole.shape == (6, 3) and block.ops[-1].input("Grad") == [whole.name]
    start, _ = rows(True)
    untouched = [0, 2, 3, 5]
    np.testing.assert_allclose(table[untouched], start[untouched] * 0.95**3, rtol=1e-5)


def test_the_pairs_that_go_on_to_the_optimizer():
    loss, [a] = parameters(a=[1.0])
    pairs = fluid.backward.append_backward(loss)
    assert R.append_regularization_ops(pairs) == pairs
    assert R.append_regularization_ops(pairs, R.L2Decay(0.1)) == pairs
    assert R.append_regularization_ops([(a, None)], R.L2Decay(0.1)) == [(a, None)]
