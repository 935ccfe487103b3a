"""Weights whose length and direction are trained apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import OpValueError

L = fluid.layers
EXE = fluid.Executor(fluid.CPUPlace())
X = np.random.default_rng(0).normal(size=(5, 3)).astype("float32")


def held(name: str) -> Any:
    """A copy of what the scope has."""
    return np.array(fluid.global_scope().find_var(name).get_tensor())


def length(v: Any, dim: int | None) -> Any:
    """The length of an array along all axes but one."""
    return np.sqrt((v**2).sum(axis=tuple(i for i in range(v.ndim) if i != dim), keepdims=dim is not None))


@pytest.mark.parametrize(("dim", "shape"), [(None, (1,)), (0, (3, 1)), (1, (1, 4)), (-1, (1, 4))])
def test_the_weight_begins_as_its_initializer_says(dim: int | None, shape: tuple[int, ...]) -> None:
    first = fluid.initializer.Uniform(-1, 1, seed=3)
    attr = fluid.WeightNormParamAttr(dim=dim, initializer=first, learning_rate=0.5)
    y = L.fc(L.data("x", [3]), 4, param_attr=attr, bias_attr=False)
    v, g = y.params
    assert (v.name, v.shape, g.name, g.shape) == ("fc_0.w_0_v", (3, 4), "fc_0.w_0_g", shape)
    assert v.optimize_attr == g.optimize_attr == {"learning_rate": 0.5} and y.param is v
    EXE.run(fluid.default_startup_program())
    np.testing.assert_allclose(held(g.name), length(held(v.name), dim if dim is None else dim % 2), rtol=1e-6)
    (out,) = EXE.run(feed={"x": X}, fetch_list=[y])
    np.testing.assert_allclose(out, X @ held(v.name), rtol=1e-5)


@pytest.mark.parametrize("dim", [None, 1])
def test_both_parts_are_trained(dim: int | None) -> None:
    y = L.fc(L.data("x", [3]), 4, param_attr=fluid.WeightNormParamAttr(dim, "w"), bias_attr=False)
    loss = L.mean(L.square(y))
    _, pairs = fluid.optimizer.SGD(0.1).minimize(loss)
    assert sorted(p.name for p, _ in pairs) == ["w_g", "w_v"]
    EXE.run(fluid.default_startup_program())
    before = held("w_v"), held("w_g")
    by_v, by_g = EXE.run(feed={"x": X}, fetch_list=["w_v@GRAD", "w_g@GRAD"])

    def cost(v: Any, g: Any) -> float:
        return float(((X @ (g * v / length(v, dim))) ** 2).mean())

    v, g = (b.astype("float64") for b in before)
    for array, gradient, which in ((v, by_v, 0), (g, by_g, 1)):
        for at in np.ndindex(array.shape):
            up, down = (array.copy() for _ in range(2))
            up[at] += 1e-5
            down[at] -= 1e-5
            ends = [cost(a, g) if which == 0 else cost(v, a) for a in (up, down)]
            assert gradient[at] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-3, abs=1e-5)
    np.testing.assert_allclose(held("w_g"), before[1] - 0.1 * by_g, rtol=1e-5)


def test_filters_of_images() -> None:
    image = L.data("image", [2, 5, 5])
    y = L.conv2d(image, 3, 3, param_attr=fluid.WeightNormParamAttr(dim=0), bias_attr=False)
    assert [p.shape for p in y.params] == [(3, 2, 3, 3), (3, 1, 1, 1)] and y.shape == (-1, 3, 3, 3)
    EXE.run(fluid.default_startup_program())
    EXE.run(feed={"image": np.ones((1, 2, 5, 5), "float32")}, fetch_list=[y])


def test_an_axis_that_is_not_there() -> None:
    x = L.data("x", [3])
    before = fluid.default_main_program().desc.serialize_to_string()
    with pytest.raises(OpValueError, match="has no such axis"):
        L.fc(x, 4, param_attr=fluid.WeightNormParamAttr(dim=2))
    assert fluid.default_main_program().desc.serialize_to_string() == before
