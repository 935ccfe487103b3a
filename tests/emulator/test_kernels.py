"""Kernels on the emulator: threads, warps, shared memory and atomics, in all three orders."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

from fluidnb_kernels import emulator
from fluidnb_kernels.emulator import RawKernel, RawModule, running
from fluidnb_kernels.emulator.raw import ORDERS

REDUCE = """
template <typename T> __device__ __forceinline__ T block_sum(T v) {
  __shared__ T part[32];
  for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
  __syncthreads();
  v = threadIdx.x < (blockDim.x + 31) / 32 ? part[threadIdx.x] : T(0);
  if (threadIdx.x < 32)
    for (int o = 16; o; o >>= 1) v += __shfl_down_sync(0xffffffffu, v, o);
  __syncthreads();
  return v;
}
template <typename T> __global__ void row_sum(const T* __restrict__ x, T* __restrict__ out, int columns) {
  T v = 0;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) v += x[(long long)blockIdx.x * columns + c];
  v = block_sum<T>(v);
  if (threadIdx.x == 0) out[blockIdx.x] = v;
}
"""

COMPACT = """
extern "C" __global__ void compact(const int* x, int* out, int* count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool wanted = i < n && x[i] > 0;
  unsigned votes = __ballot_sync(0xffffffffu, wanted);
  int lane = threadIdx.x & 31, base = 0;
  if (lane == 0) base = atomicAdd(count, __popc(votes));
  base = __shfl_sync(0xffffffffu, base, 0);
  if (wanted) out[base + __popc(votes & ((1u << lane) - 1))] = x[i];
}
"""

SORT = """
extern "C" __global__ void sort(float* a, int n) {
  extern __shared__ float s[];
  int t = threadIdx.x;
  s[t] = t < n ? a[t] : INFINITY;
  __syncthreads();
  for (int k = 2; k <= blockDim.x; k <<= 1)
    for (int j = k >> 1; j; j >>= 1) {
      int o = t ^ j;
      if (o > t && (s[t] > s[o]) == !(t & k)) { float x = s[t]; s[t] = s[o]; s[o] = x; }
      __syncthreads();
    }
  if (t < n) a[t] = s[t];
}
"""


@pytest.fixture(autouse=True, params=ORDERS)
def order(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test here runs in each order."""
    if emulator.missing():
        pytest.skip(emulator.missing())
    with running(request.param, seed=7):
        yield request.param


@pytest.mark.parametrize(("ctype", "dtype"), [("float", np.float32), ("double", np.float64), ("int", np.int32)])
@pytest.mark.parametrize("threads", [32, 128, 96])
def test_a_template_with_shuffles_and_shared_memory(ctype: str, dtype: type, threads: int) -> None:
    x = np.arange(5 * 333, dtype=dtype).reshape(5, 333) % 7
    out = np.empty(5, dtype)
    kernel = RawModule(REDUCE, name_expressions=[f"row_sum<{ctype}>"]).get_function(f"row_sum<{ctype}>")
    kernel((5,), (threads,), (x, out, np.int32(333)))
    np.testing.assert_array_equal(out, x.sum(1, dtype=dtype))


def test_ballots_and_atomics() -> None:
    x = np.random.default_rng(3).integers(-5, 5, 1000).astype(np.int32)
    out, count = np.zeros(1000, np.int32), np.zeros(1, np.int32)
    RawKernel(COMPACT, "compact")((8,), (128,), (x, out, count, np.int32(1000)))
    assert count[0] == (x > 0).sum()
    np.testing.assert_array_equal(np.sort(out[: count[0]]), np.sort(x[x > 0]))


def test_dynamic_shared_memory() -> None:
    a = np.random.default_rng(4).standard_normal(200).astype(np.float32)
    expected = np.sort(a)
    RawKernel(SORT, "sort")((1,), (256,), (a, np.int32(200)), shared_mem=1024)
    np.testing.assert_array_equal(a, expected)


def test_all_three_axes() -> None:
    text = """
    extern "C" __global__ void where(int* out) {
      int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      out[block * blockDim.x * blockDim.y * blockDim.z + thread] += block * 100 + thread;
    }"""
    out = np.zeros((12, 24), np.int32)
    RawKernel(text, "where")((3, 2, 2), (4, 3, 2), (out,))
    np.testing.assert_array_equal(out, np.arange(12)[:, None] * 100 + np.arange(24))


def test_votes_of_a_block() -> None:
    text = """
    extern "C" __global__ void votes(int* out, int limit) {
      int p = threadIdx.x < limit;
      int all = __syncthreads_and(p), any = __syncthreads_or(p), count = __syncthreads_count(p);
      if (threadIdx.x == 0) { out[0] = all; out[1] = any; out[2] = count; }
    }"""
    out = np.zeros(3, np.int32)
    for limit in (0, 40, 64):
        RawKernel(text, "votes")((1,), (64,), (out, np.int32(limit)))
        assert out.tolist() == [int(limit == 64), int(limit > 0), limit]


def test_shuffles_within_groups_of_eight() -> None:
    text = """
    extern "C" __global__ void shuffle(int* out) {
      int t = threadIdx.x;
      out[t] = __shfl_down_sync(~0u, t, 2, 8);
      out[32 + t] = __shfl_up_sync(~0u, t, 3, 8);
      out[64 + t] = __shfl_xor_sync(~0u, t, 5, 8);
      out[96 + t] = __shfl_sync(~0u, t, 1, 8);
    }"""
    out, t = np.zeros((4, 32), np.int32), np.arange(32)
    RawKernel(text, "shuffle")((1,), (32,), (out,))
    np.testing.assert_array_equal(out[0], np.where(t % 8 + 2 < 8, t + 2, t))
    np.testing.assert_array_equal(out[1], np.where(t % 8 >= 3, t - 3, t))
    np.testing.assert_array_equal(out[2], t ^ 5)
    np.testing.assert_array_equal(out[3], t // 8 * 8 + 1)


@pytest.mark.parametrize(
    ("ctype", "dtype", "up", "down"),
    [
        ("__half", np.float16, "__half2float", "__float2half"),
        ("__nv_bfloat16", ml_dtypes.bfloat16, "__bfloat162float", "__float2bfloat16"),
    ],
)
def test_half_precision_rounds_as_numpy_does(ctype: str, dtype: type, up: str, down: str) -> None:
    text = f"""#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void third(const {ctype}* x, {ctype}* y, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = {down}({up}(x[i]) / 3.f);
}}"""
    x = (np.random.default_rng(5).standard_normal(1000) * 100).astype(dtype)
    y = np.zeros_like(x)
    RawKernel(text, "third")((4,), (256,), (x, y, np.int32(1000)))
    np.testing.assert_array_equal(y, (x.astype(np.float32) / np.float32(3)).astype(dtype))


def test_vector_loads() -> None:
    text = """
    extern "C" __global__ void add(const float4* x, float4* y, int n) {
      int i = blockIdx.x * blockDim.x + threadIdx.x;
      if (i < n) { float4 a = __ldg(x + i); y[i] = make_float4(a.x + 1, a.y + 2, a.z + 3, a.w + 4); }
    }"""
    x, y = np.zeros((50, 4), np.float32), np.zeros((50, 4), np.float32)
    RawKernel(text, "add")((2,), (32,), (x.ctypes.data, y.ctypes.data, np.int32(50)))
    np.testing.assert_array_equal(y, np.broadcast_to([1, 2, 3, 4], (50, 4)))
