"""SelectedRows fed to a program of a device, and as a parameter there."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import EnforceNotMet
from fluidnb.values.selected_rows import SelectedRows

ROWS = fluid.core.VarDesc.VarType.SELECTED_ROWS


def rows(numbers: list[int], values: np.ndarray) -> SelectedRows:
    made = fluid.core.SelectedRows(numbers, 9)
    made.get_tensor().set(values.astype(np.float32), fluid.CPUPlace())
    return made


def test_steps_of_a_parameter_that_holds_some_rows(cuda: fluid.CUDAPlace) -> None:
    rng = np.random.default_rng(3)
    with fluid.fresh(), fluid.scope_guard(fluid.Scope()):
        block = fluid.default_main_program().global_block()
        param, grad = (
            block.create_var(name=name, type=ROWS, shape=[9, 3], dtype="float32", persistable=name == "param")
            for name in ("param", "grad")
        )
        rate = fluid.layers.fill_constant([1], "float32", 0.5)
        block.append_op(
            type="sgd",
            inputs={"Param": [param], "Grad": [grad], "LearningRate": [rate]},
            outputs={"ParamOut": [param]},
        )
        out = fluid.layers.get_tensor_from_selected_rows(param)
        want = {n: rng.uniform(-1, 1, 3).astype(np.float32) for n in (7, 2, 5)}
        fluid.global_scope().var("param").value = rows(list(want), np.stack(list(want.values())))
        exe = fluid.Executor(cuda)
        for numbers in ([5, 7, 5], [2], [7, 2, 5, 2]):
            values = rng.uniform(-1, 1, (len(numbers), 3)).astype(np.float32)
            [found] = exe.run(feed={"grad": rows(numbers, values)}, fetch_list=[out])
            for number, value in zip(numbers, values, strict=True):
                want[number] = want[number] - np.float32(0.5) * value
            np.testing.assert_allclose(found, np.stack(list(want.values())), 1e-6, 1e-6)
        with pytest.raises(EnforceNotMet, match="does not hold row 1"):
            exe.run(feed={"grad": rows([1], np.ones((1, 3)))}, fetch_list=[out])
