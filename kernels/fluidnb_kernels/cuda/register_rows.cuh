// Lines of contiguous elements, held in registers: what a line needs more than once is read from memory once,
// and a thread issues all of its loads before it waits for the first.
//
// A line has n elements, a multiple of N, and begins where N of them can be loaded at once.
#pragma once
#include "reduce.cuh"

// What is a member's of a line: K packs of N elements, as many packs apart as the team has members.
template <class T, int N, int K> struct share {
  wide_t<T> at[K][N];
};
// How many blocks share a multiprocessor, which bounds the registers of a kernel that holds one operand, or two. On an
// H100, layer_norm reached 86 % of a copy's speed with four blocks and 70 % without a bound, softmax_grad 90 % and 71 %.
// Half precision needs more registers than four or five blocks leave; a multiprocessor of compute capability 7.5 holds
// four blocks at most.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define SHORT_HELD 4
#else
#define SHORT_HELD 5
#endif
#define ONE_HELD __launch_bounds__(256, sizeof(T) < 4 ? 2 : 4)
#define TWO_HELD __launch_bounds__(256, sizeof(T) < 4 || N * K * sizeof(T) > 32 ? 2 : SHORT_HELD)
#define EACH_HELD(k, i)                    \
  _Pragma("unroll") for (int k = 0; k < K; ++k) \
    _Pragma("unroll") for (int i = 0; i < N; ++i)

template <int N> __device__ __forceinline__ int pack_of(int k, int way) { return member(way) + k * members(way); }
template <int N> __device__ __forceinline__ bool is_held(int k, int n, int way) { return pack_of<N>(k, way) * N < n; }

// Zeros fill the end of the line.
template <class T, int N, int K>
__device__ __forceinline__ share<T, N, K> load_share(const T* line, int n, int way) {
  share<T, N, K> v;
#pragma unroll
  for (int k = 0; k < K; ++k) {
    pack<T, N> p;
    const bool there = is_held<N>(k, n, way);
    if (there) p = load<T, N>(line, pack_of<N>(k, way));
#pragma unroll
    for (int i = 0; i < N; ++i) v.at[k][i] = there ? up<T>(p.at[i]) : wide_t<T>(0);
  }
  return v;
}

template <class T, int N, int K>
__device__ __forceinline__ void leave(T* line, int n, int way, const share<T, N, K>& v) {
#pragma unroll
  for (int k = 0; k < K; ++k) {
    pack<T, N> p;
#pragma unroll
    for (int i = 0; i < N; ++i) p.at[i] = down<T>(v.at[k][i]);
    if (is_held<N>(k, n, way)) store<T, N>(line, pack_of<N>(k, way), p);
  }
}

// N elements in the precision of a computation, by loads of 16 bytes.
template <class C, int N> __device__ __forceinline__ pack<C, N> loaded(const C* p, int at) {
  const int M = 16 / sizeof(C) < N ? 16 / sizeof(C) : N;
  pack<C, N> all;
#pragma unroll
  for (int q = 0; q < N / M; ++q) {
    const pack<C, M> some = load<C, M>(p, at * (N / M) + q);
#pragma unroll
    for (int i = 0; i < M; ++i) all.at[q * M + i] = some.at[i];
  }
  return all;
}
