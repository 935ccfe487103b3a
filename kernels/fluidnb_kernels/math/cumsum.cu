// cumsum: the sums of all elements of a line up to each.
//
// Moves one element in and one out, once; where there are many lines it aims at the bandwidth of a device copy. One line
// is the work of one block at most, which takes as many elements at a time as it has threads and carries the sum on.
#include "reduce.cuh"

// The sum of what the threads of a line up to this one bring, and in `all` that of all of them.
template <class C> __device__ __forceinline__ C up_to(C x, int way, C& all) {
  __shared__ C parts[TEAM][32];
  if (way == COLUMNS) {
    __syncthreads();  // the results of the previous call are read until here
    parts[threadIdx.y][threadIdx.x] = x;
    __syncthreads();
    all = 0;
    for (int k = 0; k < TEAM; ++k) {
      all += parts[k][threadIdx.x];
      if (k == threadIdx.y) x = all;
    }
    return x;
  }
  for (int lanes = 1; lanes < 32; lanes *= 2) {
    C before = __shfl_up_sync(0xffffffffu, x, lanes);
    if (threadIdx.x >= lanes) x += before;
  }
  all = __shfl_sync(0xffffffffu, x, 31);
  if (way == WARPS) return x;
  __syncthreads();
  if (threadIdx.x == 31) parts[threadIdx.y][0] = x;
  __syncthreads();
  C before = 0;
  all = 0;
  for (int k = 0; k < TEAM; ++k) {
    if (k == threadIdx.y) before = all;
    all += parts[k][0];
  }
  return before + x;
}

template <class T>
__global__ void cumsum(const T* x, T* y, bool exclusive, bool reverse, long long lines, long long n, long long inner,
                       int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    long long at = line / inner * n * inner + line % inner, step = inner;
    if (reverse) {
      at += (n - 1) * inner;
      step = -inner;
    }
    C carried = 0, all;
    for (long long from = 0; from < n; from += members(way)) {
      long long k = from + member(way);
      bool own = line < lines && k < n;
      C sum = carried + up_to(own ? up<T>(x[at + k * step]) : C(0), way, all);
      carried += all;
      if (own && !exclusive) y[at + k * step] = down<T>(sum);
      if (own && exclusive && k + 1 < n) y[at + (k + 1) * step] = down<T>(sum);
      if (own && exclusive && k == 0) y[at] = down<T>(C(0));
    }
  }
}
