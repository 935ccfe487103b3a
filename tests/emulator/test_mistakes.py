"""The emulator reports what is wrong or undefined on a GPU, with the kernel's line."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from fluidnb.errors import NotFound, OpTypeError, OpValueError
from fluidnb_kernels import emulator
from fluidnb_kernels.emulator import CompileError, EmulatorError, RawKernel, RawModule, running
from fluidnb_kernels.emulator.compiler import sanitized
from fluidnb_kernels.emulator.raw import ORDERS
from tests.tools.refused import refused

pytestmark = pytest.mark.skipif(bool(emulator.missing()), reason=emulator.missing())


def launch(body: str, *args: Any, threads: int = 64, shared: int = 0, parameters: str = "float* x") -> None:
    """Run a kernel with this body in one block."""
    text = f'extern "C" __global__ void f({parameters}) {{\n{body}\n}}'
    RawModule(text, name="f.cu").get_function("f")((1,), (threads,), args, shared_mem=shared)


def zeros() -> np.ndarray[Any, Any]:
    return np.zeros(64, np.float32)


MISTAKES = {
    "a barrier that some threads miss": (
        "x[0] = 1;\nif (threadIdx.x < 16) __syncthreads();",
        r"line 3: __syncthreads is not reached by 48 of 64 threads",
    ),
    "two barriers at once": (
        "if (threadIdx.x < 16)\n__syncthreads();\nelse\n__syncthreads();",
        r"__syncthreads is reached at different lines, (3 and 5|5 and 3)",
    ),
    "a mask with lanes that never come": (
        "float v = 1;\nif (threadIdx.x < 16) v = __shfl_down_sync(0xffffffff, v, 1);\n__syncthreads();\nx[0] = v;",
        r"line 3: thread \d+ waits for lanes of mask ffffffff that never come",
    ),
    "a lane outside its own mask": (
        "x[threadIdx.x] = __shfl_sync(0xffff, 1.f, 0);",
        r"line 2: lane \d+ is not in the mask 0000ffff",
    ),
    "lanes that wait for different things": (
        "int a = 0;\nif (threadIdx.x & 1)\na = __ballot_sync(~0u, 1);\nelse\na = __shfl_sync(~0u, 1, 0);\nx[0] = a;",
        r"lanes of one warp wait for different things",
    ),
    "an assertion": (
        "assert(x[threadIdx.x] == 7);",
        r"line 2: assert\(x\[threadIdx.x\] == 7\) does not hold, in thread",
    ),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("body", "words"), MISTAKES.values(), ids=MISTAKES)
def test_it_is_told_with_its_line(body: str, words: str, order: str) -> None:
    with running(order), refused(EmulatorError, words) as caught:
        launch(body, zeros())
    assert "Kernel f (f.cu)" in str(caught.value)


def test_the_emulator_goes_on_after_a_mistake() -> None:
    for _ in range(40):
        with pytest.raises(EmulatorError):
            launch("if (threadIdx.x == 0) assert(false);\n__syncthreads();", zeros())
    x = zeros()
    launch("x[threadIdx.x] = 1;\n__syncthreads();\nx[threadIdx.x] += x[63 - threadIdx.x] == 0;", x)
    np.testing.assert_array_equal(x, np.ones(64))


def test_a_race_gives_other_results_in_another_order() -> None:
    race = "__shared__ float s[64];\ns[threadIdx.x] = threadIdx.x;\nx[threadIdx.x] = s[63 - threadIdx.x];"
    forward, reverse = zeros(), zeros()
    launch(race, forward)
    with running("reverse"):
        launch(race, reverse)
    assert np.isnan(forward).any() and np.isnan(reverse).any(), "shared memory is poisoned"
    assert not np.array_equal(forward, reverse, equal_nan=True)


def test_shared_memory_is_poisoned_before_every_block() -> None:
    text = """extern "C" __global__ void f(float* x) {
      __shared__ float s;
      if (blockIdx.x == 0) s = 1;
      __syncthreads();
      x[blockIdx.x] = s;
    }"""
    x = np.zeros(2, np.float32)
    RawKernel(text, "f")((2,), (1,), (x,))
    assert x[0] == 1 and np.isnan(x[1])


ARGUMENTS: dict[str, tuple[str, tuple[Any, ...], str]] = {
    "a Python number": ("float* x, float s", (zeros(), 1.5), "Argument 1"),
    "a number of another size": ("float* x, int n", (zeros(), np.int64(3)), "passed as 'q'"),
    "an array of another dtype": ("int* x", (zeros(),), "points to another type"),
    "an array with gaps": ("float* x", (np.zeros((4, 4), np.float32).T[:2],), "not contiguous"),
    "a list": ("float* x", ([1.0],), "is a pointer"),
    "too few": ("float* x, int n", (zeros(),), "takes 2 arguments"),
}


@pytest.mark.parametrize(("parameters", "args", "words"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_arguments_are_held_against_the_parameters(parameters: str, args: tuple[Any, ...], words: str) -> None:
    with refused(OpTypeError, words):
        launch(";", *args, parameters=parameters)


@pytest.mark.parametrize(("grid", "block", "shared"), [((1,), (2048,), 0), ((0,), (1,), 0), ((1, 70000), (1,), 0),
                                                       ((1,), (1, 1, 65), 0), ((1,), (32,), 50_000)])  # fmt: skip
def test_launches_that_cuda_refuses(grid: tuple[int, ...], block: tuple[int, ...], shared: int) -> None:
    kernel = RawKernel('extern "C" __global__ void f(float* x) {}', "f")
    with pytest.raises(EmulatorError, match="CUDA_ERROR_INVALID_VALUE"):
        kernel(grid, block, (zeros(),), shared_mem=shared)


def test_more_shared_memory_has_to_be_asked_for() -> None:
    kernel = RawKernel('extern "C" __global__ void f(float* x) { extern __shared__ float s[]; s[14000] = 1; }', "f")
    kernel.max_dynamic_shared_size_bytes = 60_000
    kernel((1,), (1,), (zeros(),), shared_mem=60_000)
    with pytest.raises(EmulatorError):
        kernel.max_dynamic_shared_size_bytes = 1 << 20


def test_text_that_does_not_compile() -> None:
    with pytest.raises(CompileError, match=r"f.cu:2:\d+: error: .*nope"):
        launch("x[0] = nope;", zeros())


def test_names_that_are_not_there() -> None:
    with pytest.raises(NotFound, match="no kernel g"):
        RawKernel('extern "C" __global__ void f(float* x) {}', "g")
    with pytest.raises(OpValueError, match="order"), running("sideways"):
        pass


SANITIZED = """
import sys
import numpy as np
from fluidnb_kernels.emulator import RawKernel, running
text = '''extern "C" __global__ void f(float* x, int n) {
  __shared__ float s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x + n] = s[63 - threadIdx.x];
}'''
x = np.zeros(64, np.float32)
with running("shuffled", sanitize=True):
    RawKernel(text, "f")((2,), (64,), (x, np.int32(sys.argv[1])))
print("done")
"""


@pytest.mark.parametrize("past", [0, 1])
def test_the_address_sanitizer_sees_one_element_too_many(past: int) -> None:
    command = [sys.executable, "-c", SANITIZED, str(past)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=sanitized())
    if past:
        assert done.returncode != 0 and "heap-buffer-overflow" in done.stderr and "kernel.cu:5" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == "done"
