"""delete_var: the value is gone, in both walkers, and a debugger gets it back."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import memory
from fluidnb.errors import EnforceNotMet
from fluidnb.runtime import Executor, LoweredProgram
from fluidnb.testing import OpTest
from fluidnb.values import LoDTensor, SelectedRows

CPU = fluid.CPUPlace()
X = np.arange(3000, dtype="float32").reshape(1000, 3)  # small arrays of a walk share blocks


def program(*drop: str) -> fluid.Program:
    """h = 2 x; drop; y = 3 x."""
    made = fluid.Program()
    block = made.global_block()
    for name in ("x", "y"):
        block.create_var(name=name, shape=[-1, 3], dtype="float32")
    block.append_op("scale", {"X": "x"}, {"Out": "h"}, {"scale": 2.0})
    block.append_op("delete_var", {"X": list(drop)})
    block.append_op("scale", {"X": "x"}, {"Out": "y"}, {"scale": 3.0})
    return made


def machine(made: fluid.Program, scope: fluid.Scope) -> fluid.runtime.Interpreter:
    """A machine at the start."""
    return Executor.interpreter(LoweredProgram(made.desc, ("x",), ("y",), CPU), scope, {"x": (X, ())})


class TestDeleteVar(OpTest):
    op_type = "delete_var"

    def test_the_memory_is_free_at_once(self) -> None:
        used = []
        for drop in (["y"], ["h"]):
            walker = machine(program(*drop), fluid.Scope())
            walker.step()
            before = memory.used(CPU)
            walker.step()
            walker.journal.clear()
            used.append(before - memory.used(CPU))
        assert used[0] == 0 < used[1]

    @pytest.mark.parametrize("keep", [False, True])
    def test_what_else_there_is_stays(self, keep: bool) -> None:
        scope = fluid.Scope()
        for _ in range(2):
            (y,) = Executor(CPU).run(program("h"), feed={"x": X}, fetch_list=["y"], scope=scope, keep_scopes=keep)
            assert y.tolist() == (3 * X).tolist()
        if keep:
            assert {n: v.value is None for n, v in scope.kids[0].vars.items()} == {"x": False, "h": True, "y": False}


def test_a_step_back_over_it() -> None:
    walker = machine(program("h"), fluid.Scope())
    walker.step()
    held = walker.value("h").array
    for _ in range(2):
        walker.step()
        assert walker.value("h") is None
        walker.step()
        walker.back()
        walker.back()
        assert walker.value("h").array is held and held.tolist() == (2 * X).tolist()
    assert walker.run().value("y").array.tolist() == (3 * X).tolist()


def test_rows_go_too_and_a_step_back_returns_them() -> None:
    made = program("h")
    made.global_block().create_var(name="rows", type=fluid.core.VarDesc.VarType.SELECTED_ROWS, dtype="float32")
    made.global_block().append_op("delete_var", {"X": ["rows"]})
    walker = machine(made, fluid.Scope())
    rows = walker.stack[0].scope.var("rows").value = SelectedRows([0], 2, LoDTensor(np.ones((1, 3), "float32")))
    assert walker.run().value("rows") is None
    walker.back()
    assert walker.value("rows") is rows


@pytest.mark.parametrize("keep", [False, True])
def test_who_reads_it_later_gets_an_error(keep: bool) -> None:
    made = program("h")
    made.global_block().append_op("scale", {"X": "h"}, {"Out": "late"})
    with pytest.raises(EnforceNotMet, match="delete_var has dropped h"):
        Executor(CPU).run(made, feed={"x": X}, fetch_list=["y"], scope=fluid.Scope(), keep_scopes=keep)


@pytest.mark.parametrize("keep", [False, True])
def test_what_is_written_again_can_be_fetched(keep: bool) -> None:
    made = program("h", "y", "h")
    made.global_block().append_op("scale", {"X": "x"}, {"Out": "h"}, {"scale": 4.0})
    for _ in range(2):
        out = Executor(CPU).run(made, feed={"x": X}, fetch_list=["y", "h"], scope=fluid.Scope(), keep_scopes=keep)
        assert [o.tolist() for o in out] == [(3 * X).tolist(), (4 * X).tolist()]
