"""An operator that fails inside loops: the message names the iterations, the block, the operator and the line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb import op
from fluidnb.backward import append_backward
from fluidnb.errors import EnforceNotMet
from fluidnb.layers.control_flow import ConditionalBlock, StaticRNN, While
from fluidnb.op import OpDesc, same

L = fluid.layers
EXE = fluid.Executor(fluid.CPUPlace())
BOTH = pytest.mark.parametrize("machine", [False, True])


def copied(x: np.ndarray[Any, Any], out: np.ndarray[Any, Any]) -> None:
    """Copy, unless there is a 7."""
    if (x == 7).any():
        raise ZeroDivisionError("a seven")
    np.copyto(out, x)


@pytest.fixture(autouse=True)
def no_sevens() -> Iterator[None]:
    """An operator that copies its input and fails when it is a 7; its gradient is one of the same kind."""

    def kernel(b: op.Binder) -> None:
        b(copied, b["X"], b["Out"])

    def gradient(desc: OpDesc, *_: Any) -> list[OpDesc]:
        given, taken = desc.outs["Out"][0] + "@GRAD", desc.ins["X"][0] + "@GRAD"
        return [OpDesc("no_sevens", {"X": [given]}, {"Out": [taken]})]

    op.op("no_sevens", inputs={"X": "any"}, outputs={"Out": "same"}, infer=same(), grad=gradient)(kernel)
    with fluid.fresh():
        yield
    op.remove_op("no_sevens")


def checked(x: Any) -> Any:
    """The operator, appended to the current block."""
    block = fluid.default_main_program().current_block()
    out = block.create_var(name="checked", dtype=x.dtype, shape=x.shape)
    block.append_op("no_sevens", {"X": x}, {"Out": out})
    return out


@contextmanager
def loop(n: int) -> Iterator[Any]:
    """for i in range(n)."""
    i, end = L.zeros([1], "int64"), L.fill_constant([1], "int64", n)
    cond = L.less_than(i, end)
    with While(cond).block():
        yield i
        L.increment(i)
        L.less_than(i, end, cond=cond)


def message(machine: bool, feed: dict[str, Any] | None = None, fetch: list[Any] | None = None) -> str:
    """The error of the run, without the line."""
    with pytest.raises(EnforceNotMet) as caught:
        EXE.run(feed=feed, fetch_list=fetch, keep_scopes=machine)
    lines = str(caught.value).splitlines()
    assert sum("test_failures_in_blocks.py" in line for line in lines) == 1
    return "\n".join(line for line in lines if "test_failures_in_blocks.py" not in line)


@BOTH
def test_a_loop(machine: bool) -> None:
    start = L.data("start", [1], dtype="int64", append_batch_size=False)
    with loop(5) as i:
        checked(L.elementwise_add(i, start))
    EXE.run(feed={"start": np.array([10])}, keep_scopes=machine)
    for first, iteration in ((4, 3), (3, 4), (7, 0)):
        assert message(machine, {"start": np.array([first])}) == (
            "no_sevens failed: ZeroDivisionError: a seven\n"
            "  op:       op 1 (no_sevens) in block 1\n"
            f"  in:       iteration {iteration} of while (op 3 in block 0)\n"
            "  X:        elementwise_add_0.tmp_0  int64[1]"
        )
    EXE.run(feed={"start": np.array([10])}, keep_scopes=machine)


@BOTH
def test_a_loop_in_a_branch_in_a_loop(machine: bool) -> None:
    yes = L.fill_constant([1], "bool", True)
    with loop(5) as i, ConditionalBlock([yes], is_scalar_condition=True).block(), loop(4) as j:
        checked(L.sums([i, j]))
    assert message(machine) == (
        "no_sevens failed: ZeroDivisionError: a seven\n"
        "  op:       op 1 (no_sevens) in block 3\n"
        "  in:       iteration 3 of while (op 3 in block 2)\n"
        "  in:       iteration 4 of while (op 4 in block 0)\n"
        "  X:        sum_0.tmp_0  int64[1]"
    )


@BOTH
def test_a_step_net_and_its_gradient(machine: bool) -> None:
    x = L.data("x", [4, 1], append_batch_size=False, stop_gradient=False)
    factor = L.data("factor", [4, 1], append_batch_size=False)
    rnn = StaticRNN()
    with rnn.step():
        rnn.output(L.elementwise_mul(checked(rnn.step_input(x)), rnn.step_input(factor)))
    append_backward(L.reduce_sum(rnn()))
    values, ones = np.arange(4, dtype="float32").reshape(4, 1), np.ones((4, 1), "float32")
    assert message(machine, {"x": values + 5, "factor": ones}) == (
        "no_sevens failed: ZeroDivisionError: a seven\n"
        "  op:       op 0 (no_sevens) in block 1\n"
        "  in:       iteration 2 of recurrent (op 0 in block 0)\n"
        "  X:        x  float32[1]"
    )
    assert message(machine, {"x": ones, "factor": values + 6}, ["x@GRAD"]) == (
        "no_sevens failed: ZeroDivisionError: a seven\n"
        "  op:       op 1 (no_sevens) in block 2\n"
        "  in:       iteration 1 of recurrent_grad (op 4 in block 0)\n"
        "  X:        checked@GRAD  float32[1]"
    )


@BOTH
def test_an_operator_that_cannot_be_bound(machine: bool) -> None:
    x = L.data("x", [-1], append_batch_size=False)
    total = L.assign(x)
    with loop(3):
        fluid.default_main_program().current_block().append_op("elementwise_add", {"X": x, "Y": total}, {"Out": "sum"})
        L.assign(L.concat([total, x], axis=0), output=total)
    said = message(machine, {"x": np.ones(2, "float32")})
    assert "op:       op 0 (elementwise_add) in block 1\n  in:       iteration 1 of while (op 4 in block 0)\n" in said
