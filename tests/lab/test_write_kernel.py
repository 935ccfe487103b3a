"""Kernels for the processor: written, checked, refused, replaced, taken back."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import NotFound, OpValueError
from fluidnb.op import get_op
from fluidnb.op.select import select
from fluidnb.testing import run_op
from fluidnb_kernels.lab import KernelRefused, take_back, write_kernel, written
from fluidnb_kernels.lab.cases import cases
from fluidnb_kernels.lab.checks import check_slopes
from tests.lab.conftest import registered

RELU = 'b(np.maximum, b["X"], b.const(0, b["X"].dtype), out=b["Out"])'
ONES = 'b(np.maximum, b["X"], b.const(1, b["X"].dtype), out=b["Out"])'


def chosen(dtype: str = "float32") -> object:
    """The kernel that relu runs on the processor."""
    return select(get_op("relu"), dtype, "cpu", {}).kernel


def test_it_is_used_and_taken_back() -> None:
    before, wide = chosen(), chosen("float64")
    trial = write_kernel("relu", RELU, dtypes=["float32"])
    assert trial.installed and written() == [trial]
    assert chosen() is not before and chosen("float64") is wide
    assert trial.times is not None and min(trial.times) > 0
    np.testing.assert_array_equal(run_op("relu", {"X": np.array([-1, 2], np.float32)})["Out"], [0, 2])
    trial.take_back()
    assert chosen() is before and written() == []
    with pytest.raises(NotFound):
        take_back("relu")


def test_a_program_that_ran_before_runs_the_new_kernel() -> None:
    x = fluid.layers.data("x", shape=[2])
    y = fluid.layers.relu(x)
    exe, feed = fluid.Executor(fluid.CPUPlace()), {"x": np.array([[-1, 3]], np.float32)}
    np.testing.assert_array_equal(exe.run(feed=feed, fetch_list=[y])[0], [[0, 3]])
    trial = write_kernel("relu", ONES, force=True)
    np.testing.assert_array_equal(exe.run(feed=feed, fetch_list=[y])[0], [[1, 3]])
    trial.take_back()
    np.testing.assert_array_equal(exe.run(feed=feed, fetch_list=[y])[0], [[0, 3]])


def test_a_function_with_helpers() -> None:
    text = """
def zero(b):
    return b.const(0, b["X"].dtype)

def kernel(b):
    b(np.maximum, b["X"], zero(b), out=b["Out"])
"""
    assert write_kernel("relu", text).far == 0.0


def test_wrong_results_are_refused_with_the_first_difference() -> None:
    before = registered()["relu"][1]
    with pytest.raises(KernelRefused, match=r"wrong results: Out\[0\] is off, the first of 6 that are, of 7") as caught:
        write_kernel("relu", ONES)
    assert caught.value.slots == [("on", "X [7], float32", None, None)]
    assert (caught.value.expected, caught.value.received) == ("0.0", "1.0")
    assert registered()["relu"][1] == before


def test_a_kernel_that_leaves_an_output_as_it_was() -> None:
    with pytest.raises(KernelRefused, match="wrong results") as caught:
        write_kernel("relu", "pass")
    assert caught.value.hint is not None and "uninitialized memory is NaN" in caught.value.hint


def test_wrong_results_are_taken_by_force_and_told() -> None:
    trial = write_kernel("relu", ONES, force=True)
    assert trial.installed and trial.difference is not None and "WRONG" in str(trial)
    assert "WRONG" in trial._repr_html_()


def test_written_again_it_replaces_the_first_one() -> None:
    count = len(get_op("relu").kernels)
    first = write_kernel("relu", RELU)
    second = write_kernel("relu", RELU)
    assert not first.installed and second.installed and written() == [second]
    assert len(get_op("relu").kernels) == count + 1
    with pytest.raises(KernelRefused):
        write_kernel("relu", ONES)
    assert second.installed, "one that is refused leaves the one before"


def test_kernels_of_other_dtypes_stand_beside_it() -> None:
    one, two = write_kernel("relu", RELU, dtypes=["float32"]), write_kernel("relu", RELU, dtypes=["int64"])
    assert one.installed and two.installed
    assert take_back("relu", "cpu") == [one, two]


def test_a_kernel_of_the_gradient_is_held_against_central_differences() -> None:
    text = 'b(np.multiply, b["Out@GRAD"], np.greater(b["Out"], 0), out=b["X@GRAD"])'
    with pytest.raises(KernelRefused, match="X@GRAD") as caught:
        write_kernel("relu", text, grad=True)
    assert caught.value.hint == "it read values while it was bound; a binding serves all of them."
    good = 't = b.tmp(b["Out"].shape, bool)\nb(np.greater, b["Out"], b.const(0, b["Out"].dtype), out=t)\n'
    trial = write_kernel("relu", good + 'b(np.multiply, b["Out@GRAD"], t, out=b["X@GRAD"])', grad=True)
    assert trial.op == "relu_grad" and trial.slopes.cases == 3 and trial.slopes.far < 1e-6


def test_a_slope_that_numpy_shares_is_still_found_to_be_wrong() -> None:
    tried = cases("square_grad", ["float64"], shapes=[(5, 3)])
    assert check_slopes("square_grad", "cpu", tried).wrong is None
    trial = write_kernel("square", 'b(np.multiply, b["Out@GRAD"], b["X"], out=b["X@GRAD"])', grad=True, force=True)
    wrong = check_slopes("square_grad", "cpu", tried).wrong
    assert trial.difference is not None and wrong is not None
    assert wrong.name == "X@GRAD" and float(wrong.expected) == pytest.approx(2 * float(wrong.received), rel=1e-5)


def test_no_python() -> None:
    with pytest.raises(SyntaxError) as caught:
        write_kernel("relu", "x = 1\ny = 2 +", first=2)
    assert caught.value.lineno == 3


def test_a_call_that_fails_is_told_with_its_line() -> None:
    with pytest.raises(KernelRefused, match=r"maximum\(float32\[7\], float64\[99\]") as caught:
        write_kernel("relu", '\n\nb(np.maximum, b["X"], np.ones(99), out=b["Out"])', first=2, file="<a cell>")
    assert caught.value.where is not None and caught.value.where.line == 4


def test_a_function_that_takes_no_binder() -> None:
    with pytest.raises(OpValueError, match="takes the binder"):
        write_kernel("relu", "def kernel(x, y):\n    pass")


def test_what_there_is_not() -> None:
    with pytest.raises(NotFound, match='"rleu"'):
        write_kernel("rleu", RELU)
    with pytest.raises(NotFound, match="no kernel was written for relu"):
        take_back("relu")
    with pytest.raises(OpValueError, match="cpu or cuda"):
        write_kernel("relu", RELU, "tpu")


def test_operands_of_ones_own() -> None:
    trial = write_kernel(
        "scale", 'b(np.multiply, b["X"], b.const(b.attr("scale"), b["X"].dtype), out=b["Out"])', dtypes=["float64"],
        inputs={"X": np.ones((2, 5))}, attrs={"scale": 3.0},
    )  # fmt: skip
    assert trial.tried == (("X [2, 5]", "float64"),)


def test_an_operator_whose_operands_have_to_be_given() -> None:
    with pytest.raises(OpValueError, match="takes none of the shapes") as caught:
        cases("conv2d", ["float32"], shapes=[(3,)])
    assert caught.value.hint is not None and "--input" in caught.value.hint
