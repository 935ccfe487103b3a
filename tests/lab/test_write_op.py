"""A whole operator in one text: what is checked of it, and that it is an operator like any other."""

from __future__ import annotations

import numpy as np
import pytest

import fluidnb as fluid
from fluidnb.errors import NotFound, OpValueError
from fluidnb.op import get_op, has_op
from fluidnb_kernels import emulator
from fluidnb_kernels.lab import KernelRefused, layer_of, write_op, written_ops
from fluidnb_kernels.lab.new_op import incomplete
from tests.lab.conftest import registered
from tests.tools.refused import refused

PROTO = """@op("lab_swell", inputs={"X": "numbers, any shape"}, outputs={"Out": "X² times by"},
    attrs={"by": Attr("float", 1.0, "a factor")}, infer=same(), grad=default_grad("X", "Out@GRAD"))
"""
KERNEL = '''def swell(b):
    """Out = by · X²."""
    t = b.like(b["X"])
    b(np.multiply, b["X"], b["X"], out=t)
    b(np.multiply, t, b.const(b.attr("by"), t.dtype), out=b["Out"])
'''
GRAD = '''@grad_op("lab_swell_grad")
def swell_grad(b):
    """dX = 2 · by · X · dOut."""
    t = b.like(b["X"])
    b(np.multiply, b["X"], b["Out@GRAD"], out=t)
    b(np.multiply, t, b.const(2 * b.attr("by"), t.dtype), out=b["X@GRAD"])
'''
CUDA = '''cuda("lab_swell", r"""
#include "fluid.cuh"
__global__ void swell(const float* X, float* Out, float by, long long n) {
  EACH(i, 0, n) Out[i] = by * X[i] * X[i];
}
""")
'''
WHOLE = PROTO + KERNEL + GRAD


def test_it_is_an_operator_like_any_other_and_goes_again() -> None:
    made = write_op("lab_swell", WHOLE)
    assert made.installed and made.defined == ("lab_swell", "lab_swell_grad") and made.faults == ()
    assert made.slopes.cases == 3 and made.slopes.far < 1e-6
    x = fluid.layers.data("x", shape=[2])
    x.stop_gradient = False
    y = made.layer(x, by=3.0)
    (dx,) = fluid.gradients([y], [x])
    exe = fluid.Executor(fluid.CPUPlace())
    got = exe.run(feed={"x": np.array([[1, 2]], np.float32)}, fetch_list=[y, dx])
    np.testing.assert_allclose(got, [[[3, 12]], [[6, 12]]])
    made.take_back()
    assert not has_op("lab_swell") and not has_op("lab_swell_grad") and not made.installed


def test_the_report() -> None:
    text = str(write_op("lab_swell", WHOLE))
    for words in ("X, by -> Out", "complete", "the same in both executors", "central differences", "lab_swell_grad"):
        assert words in text


def test_written_again_it_replaces_the_first_one() -> None:
    first = write_op("lab_swell", WHOLE)
    second = write_op("lab_swell", WHOLE.replace('"a factor"', '"another factor"'))
    assert written_ops() == [second] and not first.installed
    assert get_op("lab_swell").attrs["by"].doc == "another factor"
    first.take_back()
    assert has_op("lab_swell"), "what was replaced has nothing to take back"


LAST = '    b(np.multiply, t, b.const(b.attr("by"), t.dtype), out=b["Out"])\n'
LOOKING = '    b(np.multiply, b["X"], b["X"] + 0, out=b["Out"])\n'
WRONG = {
    "a gradient": (WHOLE.replace("2 * b.attr", "3 * b.attr"), r"gives a gradient that is none: X@GRAD\["),
    "an attribute without a phrase": (WHOLE.replace(', "a factor"', ""), "attribute by has no phrase"),
    "a slot without a phrase": (WHOLE.replace("numbers, any shape", ""), "input X has no phrase"),
    "no docstring": (WHOLE.replace('    """Out = by · X²."""\n', ""), "its kernel has no docstring"),
    "no shape rule": (WHOLE.replace("infer=same(), ", ""), "no shape rule"),
    "another shape than inferred": (
        WHOLE.replace("infer=same()", 'infer=lambda c: c.set("Out", (3,), c["X"].dtype)'),
        "A call .* fails: multiply",
    ),
    "an output that is not written": (WHOLE.replace(LAST, ""), r"does not write Out\[0\]"),
    "values looked at while binding": (WHOLE.replace(LAST, LOOKING), "breaks a rule of operators"),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused_and_nothing_stays(text: str, words: str) -> None:
    assert text != WHOLE
    before = registered()
    with refused(KernelRefused, words):
        write_op("lab_swell", text)
    assert registered() == before and written_ops() == []


def test_one_that_is_refused_leaves_the_one_before() -> None:
    first = write_op("lab_swell", WHOLE)
    with pytest.raises(KernelRefused):
        write_op("lab_swell", WRONG["a gradient"][0])
    assert first.installed and has_op("lab_swell_grad") and "2 * by" not in get_op("lab_swell_grad").doc
    assert get_op("lab_swell") is first.changes.made["lab_swell"][0]  # type: ignore[union-attr]


def test_by_force_it_is_taken_and_told() -> None:
    made = write_op("lab_swell", WRONG["a gradient"][0], force=True)
    assert made.installed and "WRONG" in str(made)


def test_errors_of_the_text_are_at_its_lines() -> None:
    before = registered()
    with pytest.raises(NameError) as caught:
        write_op("lab_swell", WHOLE + "nope\n", first=2, file="<an op>")
    frame = caught.value.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    assert frame is not None and frame.tb_lineno == 1 + len((WHOLE + "nope").splitlines())
    with pytest.raises(SyntaxError):
        write_op("lab_swell", "x = ")
    with pytest.raises(NotFound, match="defines no operator lab_swel") as missed:
        write_op("lab_swel", WHOLE)
    assert missed.value.hint == 'Did you mean "lab_swell" or "lab_swell_grad"?'
    with pytest.raises(OpValueError, match="registered more than once"):
        write_op("relu", WHOLE.replace("lab_swell", "relu"))
    assert registered() == before


def test_our_own_operator_can_be_replaced_and_comes_back() -> None:
    ours = get_op("relu")
    text = '''@op("relu", inputs={"X": "numbers"}, outputs={"Out": "max"}, infer=same(), replace=True,
    grad=default_grad("Out", "Out@GRAD"))
def mine(b):
    """Mine."""
    b(np.maximum, b["X"], b.const(0, b["X"].dtype), out=b["Out"])
'''
    made = write_op("relu", text)
    assert get_op("relu") is not ours
    made.take_back()
    assert get_op("relu") is ours


@pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())
def test_a_cuda_kernel_beside_it() -> None:
    made = write_op("lab_swell", WHOLE + CUDA)
    compilation, ran_on, far = made.on_cuda["lab_swell"]
    assert compilation.compiler and "the emulator" in ran_on and far < 1e-6
    assert "compiled by" in str(made)
    with pytest.raises(KernelRefused, match="wrong results: Out"):
        write_op("lab_swell", WHOLE + CUDA.replace("by * X[i] * X[i]", "X[i] * X[i] + 1"))
    with pytest.raises(KernelRefused, match="does not compile") as caught:
        write_op("lab_swell", WHOLE + CUDA.replace("by * X", "nope * X"), first=2)
    line = 2 + (WHOLE + CUDA)[: (WHOLE + CUDA).index("EACH")].count("\n")
    assert caught.value.__notes__[0].startswith(f"line {line}: error")
    assert made.installed


def test_the_layer_function() -> None:
    relu = layer_of("leaky_relu")
    assert relu.__name__ == "leaky_relu" and relu.__doc__
    x = fluid.layers.data("x", shape=[2])
    with pytest.raises(NotFound, match="no input or attribute alpa") as caught:
        relu(x, alpa=1.0)
    assert caught.value.hint == 'Did you mean "alpha"?'
    with pytest.raises(TypeError, match="takes 1 inputs"):
        relu(x, x)
    assert incomplete(get_op("leaky_relu")) == []
