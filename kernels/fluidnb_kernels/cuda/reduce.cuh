// Reductions of a warp, of a block and of lines of a tensor, with any operator that does not mind the order.
//
// An operator is a struct with `none<S>()`, which changes nothing, and `both(a, b)`. Every thread gets the result, and
// all that take part get the same bits: operands meet in a tree of fixed shape, whatever order threads run in.
#pragma once
#include "fluid.cuh"

// ---- operators

template <class C> struct ends;  // the smallest and the largest number
#define ENDS(C, smallest, largest)                                      \
  template <> struct ends<C> {                                          \
    static __device__ __forceinline__ C low() { return smallest; }      \
    static __device__ __forceinline__ C high() { return largest; }      \
  };
ENDS(float, -INFINITY, INFINITY)
ENDS(double, -INFINITY, INFINITY)
ENDS(int, -2147483647 - 1, 2147483647)
ENDS(long long, -9223372036854775807LL - 1, 9223372036854775807LL)

namespace join {
#define JOIN(name, nothing, a_and_b)                                                           \
  struct name {                                                                                \
    template <class S> static __device__ __forceinline__ S none() { return nothing; }          \
    template <class S> static __device__ __forceinline__ S both(S a, S b) { return a_and_b; }  \
  };
JOIN(sum, S(0), a + b)
JOIN(product, S(1), a * b)
JOIN(largest, ends<S>::low(), a > b || a != a ? a : b)  // a number that is none stays
JOIN(smallest, ends<S>::high(), a < b || a != a ? a : b)
JOIN(every, S(1), a && b)
JOIN(some, S(0), a || b)
}  // namespace join

// ---- sums of exponentials that do not overflow: total · exp(top)

template <class C> struct exponentials { C top, total; };
template <class C> __device__ __forceinline__ exponentials<C> exponential(C x) {
  exponentials<C> s = {x, C(1)};
  return s;
}
namespace join {
struct exponentials_too {
  template <class S> static __device__ __forceinline__ S none() {
    S s;
    s.top = ends<decltype(s.top)>::low();
    s.total = 0;
    return s;
  }
  template <class S> static __device__ __forceinline__ S both(S a, S b) {
    S s;
    s.top = largest::both(a.top, b.top);
    s.total = (a.top == s.top ? a.total : a.total * exp(a.top - s.top)) +
              (b.top == s.top ? b.total : b.total * exp(b.top - s.top));
    return s;
  }
};
}  // namespace join

// ---- a warp

template <class S> __device__ __forceinline__ S across(S x, int lanes) { return __shfl_xor_sync(0xffffffffu, x, lanes); }
template <class C> __device__ __forceinline__ exponentials<C> across(exponentials<C> x, int lanes) {
  exponentials<C> s = {across(x.top, lanes), across(x.total, lanes)};
  return s;
}

template <class F, class S> __device__ __forceinline__ S over_warp(S x) {
#pragma unroll
  for (int lanes = 16; lanes; lanes >>= 1) x = F::both(x, across(x, lanes));
  return x;
}

// ---- a block of a multiple of 32 threads, in one or two dimensions; called by all its threads

template <class F, class S> __device__ __forceinline__ S over_block(S x) {
  __shared__ S parts[32];
  int thread = threadIdx.x + blockDim.x * threadIdx.y, warps = blockDim.x * blockDim.y >> 5;
  x = over_warp<F>(x);
  __syncthreads();  // the results of the previous call are read until here
  if ((thread & 31) == 0) parts[thread >> 5] = x;
  __syncthreads();
  return over_warp<F>((thread & 31) < warps ? parts[thread & 31] : F::template none<S>());
}

// ---- lines: x[at + k * inner] for k below n. A block of 32 by TEAM threads works at lines in one of three ways.

enum lines_by { WARPS, BLOCKS, COLUMNS };  // a warp takes a line, the block does, or each TEAM threads above each other
#define TEAM 8

__device__ __forceinline__ int lines_at_once(int way) { return way == BLOCKS ? 1 : way == WARPS ? TEAM : 32; }
__device__ __forceinline__ int line_of_thread(int way) {
  return way == BLOCKS ? 0 : way == WARPS ? threadIdx.y : threadIdx.x;
}
// Which of the threads of its line a thread is, and how many there are.
__device__ __forceinline__ int member(int way) {
  return way == WARPS ? threadIdx.x : way == COLUMNS ? threadIdx.y : threadIdx.x + 32 * threadIdx.y;
}
__device__ __forceinline__ int members(int way) { return way == WARPS ? 32 : way == COLUMNS ? TEAM : 32 * TEAM; }

// `line` goes over a thread's lines; it may be `lines` or more where others of the block still have one, and the thread
// has to call over_line, too.
#define EACH_LINE(line, lines, way)                                                                        \
  for (long long first = blockIdx.x * (long long)lines_at_once(way), line = first + line_of_thread(way);   \
       first < (lines); first += gridDim.x * (long long)lines_at_once(way), line = first + line_of_thread(way))
// The elements of a thread's line that are its own, of n.
#define EACH_MEMBER(k, n, way) for (long long k = member(way); k < (n); k += members(way))

template <class F, class S> __device__ __forceinline__ S over_line(S x, int way) {
  if (way == WARPS) return over_warp<F>(x);
  if (way == BLOCKS) return over_block<F>(x);
  __shared__ S columns[TEAM][32];
  __syncthreads();
  columns[threadIdx.y][threadIdx.x] = x;
  __syncthreads();
  x = columns[0][threadIdx.x];
#pragma unroll
  for (int k = 1; k < TEAM; ++k) x = F::both(x, columns[k][threadIdx.x]);
  return x;
}
