"""Clips: of one gradient, of all of them together, and of what flows back through an activation."""

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpTypeError, OpValueError

L, C = fluid.layers, fluid.clip


@pytest.fixture(autouse=True)
def fresh():
    with fluid.fresh():
        yield


def loss_of(*weights):
    """sum of 3 w over parameters of these sizes: every gradient is 3."""
    params = [L.create_parameter([n], "float32", name=f"w{i}") for i, n in enumerate(weights)]
    return L.sums([L.reduce_sum(L.scale(p, 3.0)) for p in params]), params


def updates(loss, clip=None):
    """The difference that a step of rate 1 makes to each parameter."""
    fluid.optimizer.SGD(1.0).minimize(loss, grad_clip=clip)
    exe = fluid.Executor(fluid.CPUPlace())
    names = [p.name for p in fluid.default_main_program().all_parameters()]
    before = exe.run(fluid.default_startup_program(), fetch_list=names)
    after = exe.run(fetch_list=names)
    return [b - a for b, a in zip(before, after, strict=True)]


def test_by_value():
    loss, [w] = loss_of(4)
    w.gradient_clip_attr = C.GradientClipByValue(max=2.0)
    np.testing.assert_allclose(updates(loss)[0], [2] * 4, rtol=1e-5)


def test_by_global_norm():
    loss, _ = loss_of(4, 5)
    C.set_gradient_clip(C.GradientClipByGlobalNorm(1.5))
    for u in updates(loss):  # the norm of all nine gradients is 9
        np.testing.assert_allclose(u, np.full_like(u, 0.5), rtol=1e-5)


def test_a_norm_below_the_bound_changes_nothing():
    loss, _ = loss_of(4, 5)
    for u in updates(loss, C.GradientClipByGlobalNorm(100.0)):
        np.testing.assert_allclose(u, np.full_like(u, 3.0), rtol=1e-5)


def test_groups_are_clipped_apart():
    loss, [a, b] = loss_of(4, 9)
    C.set_gradient_clip(C.GradientClipByGlobalNorm(1.0, "first"), param_list=[a])
    C.set_gradient_clip(C.GradientClipByGlobalNorm(3.0, "second"), param_list=["w1"])
    first, second = updates(loss)
    np.testing.assert_allclose(first, [0.5] * 4, rtol=1e-5)
    np.testing.assert_allclose(second, [1.0] * 9, rtol=1e-5)


def test_one_group_has_one_bound():
    loss, [a, b] = loss_of(4, 5)
    a.gradient_clip_attr, b.gradient_clip_attr = C.GradientClipByGlobalNorm(1.0), C.GradientClipByGlobalNorm(2.0)
    before = fluid.default_main_program().desc.serialize_to_string()
    with pytest.raises(OpValueError, match="of a same group should be the same"):
        fluid.optimizer.SGD(1.0).minimize(loss)
    assert fluid.default_main_program().desc.serialize_to_string() == before


def test_a_clip_for_all_leaves_a_parameters_own_alone():
    loss, [a, b] = loss_of(1, 1)
    a.gradient_clip_attr = C.GradientClipByValue(1.0)
    assert [float(u[0]) for u in updates(loss, C.GradientClipByValue(2.0))] == pytest.approx([1.0, 2.0])


def test_bounds():
    assert (C.GradientClipByValue(2.0).min, C.GradientClipByValue(2.0, -1.0).min) == (-2.0, -1.0)
    for kind in (C.GradientClipByValue, C.ErrorClipByValue):
        with pytest.warns(UserWarning, match="max comes first") as caught:
            clip = kind(-1.0, 1.0)
        assert (clip.min, clip.max) == (-1.0, 1.0) and caught[0].filename == __file__


def test_error_clip_acts_inside_backward():
    x = L.data("x", [3], append_batch_size=False, stop_gradient=False)
    h = L.scale(x, 2.0)
    h.set_error_clip(C.ErrorClipByValue(max=0.5))
    w = L.create_parameter([3], "float32", name="w", default_initializer=fluid.initializer.Constant(1.0))
    loss = L.reduce_sum(L.scale(L.elementwise_mul(h, w), 3.0))
    fluid.optimizer.SGD(0.1).minimize(loss)
    ops = fluid.default_main_program().global_block().ops
    at = [op.type for op in ops].index("clip")
    assert ops[at].input("X") == ops[at].output("Out") == [h.name + "@GRAD"] and ops[at].attr("op_role") == 1
    assert ops[at + 1].type == "scale"
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    dx, dw = exe.run(feed={"x": np.ones(3, "float32")}, fetch_list=["x@GRAD", "w@GRAD"])
    np.testing.assert_allclose(dx, [1, 1, 1])
    np.testing.assert_allclose(dw, [6, 6, 6])


def test_error_clip_comes_after_the_sum_of_contributions():
    x = L.data("x", [3], append_batch_size=False, stop_gradient=False)
    h = L.scale(x, 1.0)
    h.set_error_clip(C.ErrorClipByValue(max=1.0))
    loss = L.reduce_sum(L.sums([L.scale(h, 0.8), L.scale(h, 0.8)]))
    fluid.backward.append_backward(loss, callbacks=[C.error_clip_callback])
    types = [op.type for op in fluid.default_main_program().global_block().ops]
    assert types.count("clip") == 1 and types[types.index("clip") - 1] == "sum"
    [dx] = fluid.Executor(fluid.CPUPlace()).run(feed={"x": np.ones(3, "float32")}, fetch_list=["x@GRAD"])
    np.testing.assert_allclose(dx, [1, 1, 1])


def test_mistakes():
    loss, [w] = loss_of(2)
    with pytest.raises(OpTypeError, match="clip of set_gradient_clip must be a BaseGradientClipAttr"):
        C.set_gradient_clip(C.ErrorClipByValue(1.0))
    with pytest.raises(OpTypeError, match="list of Parameter"):
        C.set_gradient_clip(C.GradientClipByValue(1.0), param_list=[loss])
    with pytest.raises(OpTypeError, match="group_name"):
        C.GradientClipByGlobalNorm(1.0, group_name=3)
    assert w.gradient_clip_attr is None
    h = L.scale(w, 1.0)
    h.error_clip = 3
    with pytest.raises(OpTypeError, match="is no error clip"):
        fluid.optimizer.SGD(0.1).minimize(L.reduce_sum(h))
