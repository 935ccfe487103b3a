"""CUDA text of a user's: what it says, how it is compiled, watched, checked and launched."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from fluidnb.errors import NotFound, OpTypeError, OpValueError
from fluidnb.memory import flags
from fluidnb.op import get_op
from fluidnb.op.select import select
from fluidnb_kernels import emulator
from fluidnb_kernels.cuda import nvrtc
from fluidnb_kernels.lab import KernelRefused, Trial, trial, watched, write_kernel
from fluidnb_kernels.lab.compile import compile_cuda
from fluidnb_kernels.lab.cuda_text import read_cuda
from tests.tools.refused import refused

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())
needs_nvrtc = pytest.mark.skipif(bool(nvrtc.missing()), reason=nvrtc.missing())
needs_asan = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="libasan is loaded as on Linux")

X = np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5)


RELU = """#include "fluid.cuh"
template <class T> __global__ void relu(const T* X, T* Out, long long n) {
  EACH(i, 0, n) BODY
}"""


def relu(body: str = "Out[i] = X[i] > T(0) ? X[i] : T(0);", **more: Any) -> Trial:
    """Write relu on a few numbers."""
    usual = {"dtypes": ["float32"], "inputs": {"X": X}, "first": 2}
    return write_kernel("relu", RELU.replace("BODY", body), "cuda", **{**usual, **more})


def test_it_is_used_and_taken_back() -> None:
    def chosen(dtype: str) -> object:
        return select(get_op("relu"), dtype, "cuda", {}).kernel

    before = chosen("float32"), chosen("float64")
    made = relu()
    assert made.installed and chosen("float32") is not before[0] and chosen("float64") is before[1]
    assert made.compilation is not None and "the address sanitizer" in made.ran_on
    [launch], [former] = made.launches, made.former
    assert (launch.kernel, launch.grid, launch.block, launch.read, launch.written) == (
        "relu<float>",
        (1,),
        (256,),
        60,
        60,
    )
    assert former.arguments == 120
    made.take_back()
    assert (chosen("float32"), chosen("float64")) == before


def test_random_shapes_and_the_gradient() -> None:
    made = relu(inputs=None, dtypes=["float64"])
    shapes = [shape for shape, _ in made.tried]
    assert "X [0, 3]" in shapes and "X [7]" in shapes and "X [129, 67]" in shapes
    assert made.slopes.cases == 3 and made.slopes.far < 1e-6
    text = str(made)
    assert "equal numpy's in 10 cases" in text and "says nothing of one" in text
    assert "EACH" not in made._repr_html_() and "relu" in made._repr_html_()


@needs_nvrtc
def test_warnings_and_figures() -> None:
    made = relu("{ int unused; Out[i] = X[i] > T(0) ? X[i] : T(0); }")
    assert made.compilation is not None and made.compilation.registers > 0 and made.compilation.spilled == 0
    [warning] = made.compilation.warnings
    assert warning.line == 4 and "unused" in warning.text and warning.source[warning.column - 1 :].startswith("unused")
    assert "line 4: warning" in str(made)


@pytest.mark.parametrize("by_nvrtc", [pytest.param(True, marks=needs_nvrtc), False], ids=["NVRTC", "g++"])
def test_an_error_is_told_at_its_line_with_a_caret(by_nvrtc: bool) -> None:
    text = read_cuda("__global__ void f(float* X) {\n\n\tX[0] = nope + 1;\n}", first=2)
    with pytest.raises(KernelRefused, match="does not compile") as caught:
        compile_cuda(text, "relu", ["float32"], use_nvrtc=by_nvrtc)
    said, line, caret = caught.value.__notes__
    assert said.startswith("line 4: error: ") and "nope" in said
    assert line[caret.index("^") :].startswith("nope")


def test_an_error_in_one_of_our_headers_names_the_header() -> None:
    text = read_cuda(2 * '#include "row_grid.cuh"\n' + "__global__ void f(float* X) { store<float, 4>(X); }")
    with pytest.raises(KernelRefused, match="does not compile") as caught:
        compile_cuda(text, "relu", ["float32"], use_nvrtc=False)
    assert caught.value.__notes__[0].startswith("line 3: error")


def test_one_that_does_not_compile_leaves_the_kernels_as_they_were() -> None:
    before = list(get_op("relu").kernels)
    with pytest.raises(KernelRefused, match="does not compile"):
        relu("Out[i] = nope;")
    assert get_op("relu").kernels == before


@needs_asan
@pytest.mark.parametrize(("body", "verb"), [("Out[i + 1] = X[i];", "writes"), ("Out[i] = X[i + 1];", "reads")])
def test_a_wrong_index_is_a_report_and_not_a_crash(body: str, verb: str) -> None:
    before = list(get_op("relu").kernels)
    words = rf"goes astray: line 4 of the cell {verb} 4 bytes that begin 0 bytes behind an array of 60 bytes"
    with refused(KernelRefused, words):
        relu(body)
    assert get_op("relu").kernels == before


@needs_asan
def test_an_address_that_is_none() -> None:
    with pytest.raises(KernelRefused, match=r"goes astray: line 4 of the cell writes 4 bytes|ended its process"):
        relu("{ T* wild = (T*)(i + 1); *wild = X[i]; }")


def test_a_mistake_that_the_emulator_finds() -> None:
    with pytest.raises(KernelRefused, match="line 4: __syncthreads is not reached by 241 of 256 threads"):
        relu("{ Out[i] = X[i]; __syncthreads(); }")


def test_a_kernel_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "PATIENCE", 3.0)
    with pytest.raises(KernelRefused, match="has not ended after 3 seconds"):
        relu("{ while (((volatile const T*)X)[i] < T(100)) {} Out[i] = X[i]; }")


def test_threads_that_race() -> None:
    text = """//! block = 32
    __global__ void f(const float* X, float* Out, int n) {
      __shared__ float part[33];
      int t = threadIdx.x;
      if (t == 0) part[0] = fmaxf(X[0], 0.f);
      if (t + 1 < n) part[t + 1] = fmaxf(X[t + 1], 0.f);
      if (t < n) Out[t] = part[t];
    }"""
    with pytest.raises(KernelRefused, match="wrong results: Out") as caught:
        write_kernel("relu", text, "cuda", inputs={"X": X})
    assert caught.value.hint is not None and caught.value.hint.endswith("threads race.")


def test_wrong_results_name_the_element() -> None:
    with pytest.raises(
        KernelRefused, match=r"wrong results: Out\[1, 3\] is off, the first of 7 that are, of 15"
    ) as caught:
        relu("Out[i] = X[i] > T(0) ? T(2) * X[i] : T(0);")
    assert caught.value.hint == "they are all 2 times what is expected."
    with pytest.raises(KernelRefused) as missed:
        relu("if (i < n - 2) Out[i] = X[i] > T(0) ? X[i] : T(0);")
    assert missed.value.hint is not None and "NaN" in missed.value.hint


SOFTMAX = """
//! rows = prod(X.shape[:-1])
//! width = X.shape[-1]
//! most = workspace((rows,), "float32")
//! grid = rows
//! block = 1
__global__ void highest(const float* X, float* most, int width) {
  const float* x = X + blockIdx.x * (long long)width;
  float m = x[0];
  for (int i = 1; i < width; i++) m = fmaxf(m, x[i]);
  most[blockIdx.x] = m;
}

//! grid = rows
//! block = 32
//! shared = 32 * 4
__global__ void shares(const float* X, const float* most, float* Out, int width) {
  extern __shared__ float part[];
  const float* x = X + blockIdx.x * (long long)width;
  float s = 0, m = most[blockIdx.x];
  for (int i = threadIdx.x; i < width; i += 32) s += expf(x[i] - m);
  part[threadIdx.x] = s;
  __syncthreads();
  for (int k = 1; k < 32; k++) s += part[(threadIdx.x + k) % 32];
  for (int i = threadIdx.x; i < width; i += 32) Out[blockIdx.x * (long long)width + i] = expf(x[i] - m) / s;
}
"""


def test_two_kernels_with_lines_of_their_own_and_memory_between_them() -> None:
    made = write_kernel("softmax", SOFTMAX, "cuda", inputs={"X": X})
    assert [(x.kernel, x.grid, x.block, x.shared) for x in made.launches] == [
        ("highest", (3,), (1,), 0), ("shares", (3,), (32,), 128)
    ]  # fmt: skip
    assert made.dtypes == ("float32",), "that of its pointers"


def test_options_stand_before_the_lines() -> None:
    text = """__global__ void f(const float* X, float* Out, int k) {
      int i = blockIdx.x * k + threadIdx.x;
      if (threadIdx.x < k) Out[i] = fmaxf(X[i], 0.f);
    }"""
    launch = {"grid": "X.shape[0]", "block": "32", "k": "X.shape[1]"}
    made = write_kernel("relu", text, "cuda", inputs={"X": X}, launch=launch)
    assert made.launches[0].grid == (3,) and made.launches[0].block == (32,)


def test_attributes_are_arguments() -> None:
    text = """#include "fluid.cuh"
    __global__ void f(const float* X, float* Out, float alpha, long long n) {
      EACH(i, 0, n) Out[i] = X[i] > 0 ? X[i] : alpha * X[i];
    }"""
    assert write_kernel("leaky_relu", text, "cuda", inputs={"X": X}, attrs={"alpha": 0.25}).installed


def test_half_precision() -> None:
    made = relu("Out[i] = down<T>(up<T>(X[i]) > 0.f ? up<T>(X[i]) : 0.f);", dtypes=["float16", "bfloat16"])
    assert made.dtypes == ("float16", "bfloat16") and made.slopes.why


def test_a_gradient_kernel() -> None:
    text = """#include "fluid.cuh"
    template <class T> __global__ void g(const T* Out, const T* Out_GRAD, T* X_GRAD, long long n) {
      EACH(i, 0, n) X_GRAD[i] = Out[i] > T(0) ? Out_GRAD[i] : T(0);
    }"""
    made = write_kernel("relu", text, "cuda", grad=True, inputs={"X": X}, dtypes=["float64"])
    assert made.op == "relu_grad" and made.slopes.cases == 1


def test_what_parameters_may_be_called() -> None:
    with pytest.raises(NotFound, match="a parameter Y, and relu has nothing of that name") as caught:
        write_kernel("relu", "__global__ void f(const float* Y, float* Out) {}", "cuda", inputs={"X": X})
    assert caught.value.expected == "X, Out, n"
    with pytest.raises(OpValueError, match="takes X as double"):
        write_kernel(
            "relu", "__global__ void f(const double* X, float* Out) {}", "cuda", inputs={"X": X}, dtypes=["float32"]
        )
    with pytest.raises(OpTypeError, match="Python cannot pass"):
        read_cuda("__global__ void f(float4 x) {}")
    with pytest.raises(OpValueError, match="no kernel"):
        read_cuda("// __global__ void f() {}")


def test_an_expression_without_a_value_names_its_line() -> None:
    with pytest.raises(OpValueError, match=r"line 3: grid = X.shape\[7\] has no value: IndexError"):
        write_kernel("relu", "//\n//! grid = X.shape[7]\n__global__ void f(const float* X, float* Out) {}", "cuda",
                     inputs={"X": X}, first=2)  # fmt: skip


def test_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(flags.values, "cuda_backend", "emulator")  # its memory is a device's: the host cannot touch it
    monkeypatch.setattr(trial, "TIMED_THERE", ((8, 8),))
    made = relu(inputs=None)
    assert made.times is not None and min(made.times) > 0 and made.measured_on == "X [8, 8]"
    assert "GB/s" in str(made) and "emulator, sm_" in made.ran_on
