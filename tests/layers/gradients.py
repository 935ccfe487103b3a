"""Gradients of whole programs against central differences, in both walkers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fluidnb as fluid
from tests.layers.walkers import both

STEP = 1e-6


def fed(value: Any) -> np.ndarray:
    """The numbers of a feed, to change."""
    return np.array(value)


def again(value: Any, array: np.ndarray) -> Any:
    """A feed like another one, with other numbers."""
    if isinstance(value, fluid.LoDTensor):
        tensor = fluid.LoDTensor()
        tensor.set(array, fluid.CPUPlace())
        tensor.set_lod(value.lod())
        return tensor
    return array


def check_gradients(loss: Any, feeds: dict[str, Any], rtol: float = 1e-5) -> dict[str, np.ndarray]:
    """Differentiate a loss, and compare the gradients of every float feed and parameter with central differences.

    Args:
        loss: in the default program, in which data and parameters are float64.
        feeds: what is fed.
        rtol: how close the gradients must be.

    Returns:
        The gradients by variable, 0 where the loss does not depend on it.
    """
    main = fluid.default_main_program()
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    fed_variables = [main.global_block().var(n) for n, v in feeds.items() if fed(v).dtype.kind == "f"]
    for v in fed_variables:
        v.stop_gradient = False
    pairs = fluid.backward.append_backward(loss)
    grads = {p.name: g.name for p, g in pairs}
    grads |= {v.name: v.name + "@GRAD" for v in fed_variables if main.global_block().has_var(v.name + "@GRAD")}
    values = both([loss, *grads.values()], return_numpy=False, **feeds)
    got = {n: np.array(v) for n, v in zip(grads, values[1:], strict=True)}
    scope = fluid.global_scope()

    def value(**changed: Any) -> float:
        return float(exe.run(main, feed={**feeds, **changed}, fetch_list=[loss])[0].item())

    def difference(array: np.ndarray, put: Callable[[np.ndarray], float]) -> np.ndarray:
        out = np.zeros_like(array)
        for place in np.ndindex(array.shape):
            ends = []
            for step in (STEP, -STEP):
                moved = array.copy()
                moved[place] += step
                ends.append(put(moved))
            out[place] = (ends[0] - ends[1]) / (2 * STEP)
        return out

    for variable in fed_variables:
        given = feeds[variable.name]
        want = difference(fed(given), lambda a, n=variable.name, v=given: value(**{n: again(v, a)}))
        have = got.setdefault(variable.name, np.zeros_like(want))
        np.testing.assert_allclose(have.reshape(want.shape), want, rtol=rtol, atol=1e-7, err_msg=variable.name)
    for parameter, _ in pairs:
        tensor = scope.find_var(parameter.name).get_tensor()
        before = np.array(tensor)

        def moved(array: np.ndarray, tensor: Any = tensor) -> float:
            tensor.set(array, fluid.CPUPlace())
            return value()

        want = difference(before, moved)
        tensor.set(before, fluid.CPUPlace())
        np.testing.assert_allclose(got[parameter.name], want, rtol=rtol, atol=1e-7, err_msg=parameter.name)
    return got
