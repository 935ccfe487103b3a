"""``%%kernel``, ``%%op`` and ``%fluid kernels``: what cells write, and what the user sees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from IPython.core.completer import provisionalcompleter

from fluidnb.errors import NotFound
from fluidnb.op import get_op, has_op
from fluidnb_kernels import emulator
from fluidnb_kernels.lab import KernelRefused, written, written_ops
from tests.magics.conftest import Session

needs_emulator = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())

RELU = 'b(np.maximum, b["X"], b.const(0, b["X"].dtype), out=b["Out"])'
CUDA = """%%kernel relu --dtype float32 --input X=np.linspace(-1,1,15,dtype="float32").reshape(3,5)
#include "fluid.cuh"
template <class T> __global__ void relu(const T* X, T* Out, long long n) {
  EACH(i, 0, n) Out[i] = X[i] > T(0) ? X[i] : T(0);
}"""
OP = '''%%op lab_bump
@op("lab_bump", inputs={"X": "numbers"}, outputs={"Out": "2 X"}, infer=same(), grad=default_grad("Out@GRAD"))
def bump(b):
    """Out = 2 X."""
    b(np.add, b["X"], b["X"], out=b["Out"])

@grad_op("lab_bump_grad", infer=aliases({"X@GRAD": "Out@GRAD"}))
def bump_grad(b):
    """dX = 2 dOut."""
    b(np.add, b["Out@GRAD"], b["Out@GRAD"], out=b["X@GRAD"])
'''


@pytest.fixture(autouse=True)
def taken_back() -> Iterator[None]:
    """Take back what a test wrote."""
    before = list(get_op("relu").kernels)
    yield
    for trial in written():
        trial.take_back()
    for made in written_ops():
        made.take_back()
    assert get_op("relu").kernels == before and not has_op("lab_bump")


def test_a_kernel_for_the_processor(session: Session) -> None:
    shown = session.run(f"%%kernel relu\n{RELU}")
    assert shown.startswith("relu  on cpu, float32, float64   in its place")
    assert "equal numpy's in 20 cases" in shown and "central differences" in shown
    [trial] = written()
    assert "written in this session: cpu" in session.run("%fluid kernels relu")
    assert session.run("%fluid kernels mine") == shown
    assert "removed" in session.run("%fluid kernels drop relu") and not trial.installed
    assert "no kernels yet" in session.run("%fluid kernels mine")
    error, _ = session.fail("%fluid kernels drop relu")
    assert isinstance(error, NotFound)


def test_names_of_the_session_are_there(session: Session) -> None:
    session.run("zero = 0")
    session.run(f"%%kernel relu\n{RELU.replace('(0,', '(zero,')}")
    assert written()


def test_an_error_points_to_the_line_of_the_cell(session: Session) -> None:
    _, shown = session.fail(f"%%kernel relu\n\n{RELU.replace('b.const', 'nope')}")
    assert "line 3, in kernel" in shown and "nope" in shown
    assert "fluidnb/" not in shown and "fluidnb_kernels" not in shown and len(shown.splitlines()) < 12
    _, shown = session.fail("%%kernel relu\nx = 1\ny = 2 +")
    assert "line 3" in shown and "SyntaxError" in shown and len(shown.splitlines()) < 8
    error, shown = session.fail('%%kernel relu\n\n\nb(np.maximum, b["X"], np.ones(99), out=b["Out"])')
    assert isinstance(error, KernelRefused) and "line 4" in shown and "np.ones(99)" in shown
    assert written() == []


def test_wrong_results(session: Session) -> None:
    error, shown = session.fail(f"%%kernel relu\n{RELU.replace('(0,', '(1,')}")
    assert isinstance(error, KernelRefused)
    for words in ("Out[0] is off", "expected: 0.0", "received: 1.0", "X [7], float32", "--force"):
        assert words in shown
    assert "get_ipython" not in shown and written() == []
    assert "WRONG" in session.run(f"%%kernel relu --force\n{RELU.replace('(0,', '(1,')}")


@needs_emulator
def test_a_kernel_for_cuda(session: Session) -> None:
    shown = session.run(CUDA)
    assert shown.startswith("relu  on cuda, float32   in its place") and "the emulator" in shown
    assert "relu<float>: 1 blocks of 256 threads" in shown
    _, shown = session.fail(CUDA.replace("? X[i]", "? nope[i]"))
    assert "line 4: error" in shown and "nope" in shown and "fluidnb" not in shown.replace("fluidnb_kernels", "")
    assert [t.place for t in written()] == ["cuda"], "the one before stays"
    session.run("%fluid kernels drop relu cuda")


@needs_emulator
def test_options_say_how_it_is_launched(session: Session) -> None:
    head = "%%kernel relu --device cuda --grid X.shape[0] --block 8 --input X=np.ones((3,5),'float32')\n"
    text = """__global__ void f(const float* X, float* Out) {
      int i = blockIdx.x * 5 + threadIdx.x;
      if (threadIdx.x < 5) Out[i] = fmaxf(X[i], 0.f);
    }"""
    assert "f: 3 blocks of 8 threads" in session.run(head + text)


def test_an_operator_is_used_in_a_cell_with_backward(session: Session) -> None:
    shown = session.run(OP)
    assert shown.startswith("lab_bump  X -> Out   registered") and "lab_bump_grad" in shown
    session.run("%%fluid net\nx = layers.data('x', shape=[2])\nx.stop_gradient = False\nh = lab_bump(x)\n"
                "loss = layers.mean(h)\nfluid.append_backward(loss)")  # fmt: skip
    assert session.ops()[:2] == ["lab_bump", "mean"] and "lab_bump_grad" in session.ops()
    assert session.names["h"].name == "h"
    session.run(
        "got = fluid.Executor(fluid.CPUPlace()).run(feed={'x': np.float32([[1, 2]])}, fetch_list=['h', 'x@GRAD'])"
    )
    np.testing.assert_allclose(session.names["got"], [[[2, 4]], [[1, 1]]])
    session.run(OP.replace("numbers", "other numbers"))
    assert get_op("lab_bump").inputs["X"].doc == "other numbers"
    assert "not an operator any more" in session.run("%fluid kernels drop lab_bump")


def test_an_operator_that_is_wrong(session: Session) -> None:
    error, shown = session.fail(OP.replace('b(np.add, b["Out@GRAD"]', 'b(np.multiply, b["Out@GRAD"]'))
    assert isinstance(error, KernelRefused) and "a gradient that is none: X@GRAD[" in shown
    _, shown = session.fail(OP + "\nnope()")
    assert f"line {len(OP.splitlines()) + 2}" in shown and "fluidnb/" not in shown
    assert not has_op("lab_bump")


def test_the_catalog(session: Session) -> None:
    shown = session.run("%fluid kernels")
    assert "activation" in shown and "host only" in shown
    assert "host only: runs blocks" in session.run("%fluid kernels while")
    error, _ = session.fail("%fluid kernels rleu")
    assert '"relu"' in str(error)
    error, _ = session.fail("%fluid kernels drop")
    assert "needs the name" in str(error)


def test_help(session: Session) -> None:
    for magic in ("kernel", "op"):
        assert "takes it back" in " ".join(session.run(f"%%{magic} --help\n ").split())
    assert "%%kernel relu" in session.run("%fluid")


def test_tab(session: Session) -> None:
    def offered(text: str) -> set[str]:
        with provisionalcompleter():
            return {c.text for c in session.shell.Completer.completions(text, len(text))}

    assert {"drop", "mine"} <= offered("%fluid kernels ")
    assert "softmax" in offered("%fluid kernels softm") and "--grid" in offered("%%kernel relu --gri")
    assert "softmax" in offered("%%kernel softm")


def test_unloading_takes_the_magics_away(session: Session) -> None:
    cells = session.shell.magics_manager.magics["cell"]
    assert {"kernel", "op"} <= cells.keys()
    session.run("%unload_ext fluidnb")
    assert not {"kernel", "op"} & cells.keys()
