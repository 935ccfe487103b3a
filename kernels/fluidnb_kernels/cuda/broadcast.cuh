// Functions of two tensors of which one may be repeated: F::forward(x, y), stored as R.
//
// `binary` takes X and Y of one size. In `banded` X is (outer, mid, inner) and Y is (mid): a bias has inner 1, channels
// have an inner above 1, one number has mid 1. `strided` takes any other pair, with up to six dimensions. No pointer is
// __restrict__: an output may be its input's memory.
#pragma once
#include "fluid.cuh"

// ---- Y along the elements of X

// The elements of Y that belong to the N elements of X from i * N on.
template <class T, int N>
__device__ __forceinline__ pack<T, N> bands(const T* y, long long i, long long mid, long long inner) {
  long long at = i * N;
  if (inner == 1 && mid % N == 0) return load<T, N>(y, at % mid / N);
  long long line = at / inner, left = inner - (at - line * inner), m = line % mid;
  pack<T, N> q;
  T value = y[m];
#pragma unroll
  for (int k = 0; k < N; ++k, --left) {
    if (left == 0) {
      left = inner;
      m = m + 1 == mid ? 0 : m + 1;
      value = y[m];
    }
    q.at[k] = value;
  }
  return q;
}

// ---- six dimensions as scalars; the outer ones have size 1 where there are fewer

#define SIX(s) long long s##0, long long s##1, long long s##2, long long s##3, long long s##4, long long s##5
#define SIX_OF(s) {s##0, s##1, s##2, s##3, s##4, s##5}

struct spot { long long x, y, out; };

// The offsets of element i of the sizes d in three tensors.
__device__ __forceinline__ spot locate(long long i, const long long (&d)[6], const long long (&x)[6],
                                       const long long (&y)[6], const long long (&out)[6]) {
  spot s = {0, 0, 0};
#pragma unroll
  for (int k = 5; k >= 0; --k) {
    if (d[k] == 1) continue;
    long long rest = i / d[k], at = i - rest * d[k];
    s.x += at * x[k];
    s.y += at * y[k];
    s.out += at * out[k];
    i = rest;
  }
  return s;
}

// ---- forward

template <class F, class T, class R, int N>
__device__ __forceinline__ pack<R, N> joined(const pack<T, N>& p, const pack<T, N>& q) {
  pack<R, N> r;
#pragma unroll
  for (int k = 0; k < N; ++k) r.at[k] = down<R>(F::forward(up<T>(p.at[k]), up<T>(q.at[k])));
  return r;
}

template <class F, class T, class R, int N>
__global__ void binary(const T* x, const T* y, R* out, long long n) {
  EACH(i, 0, n / N) store<R, N>(out, i, joined<F, T, R, N>(load<T, N>(x, i), load<T, N>(y, i)));
  EACH(i, n / N * N, n) out[i] = down<R>(F::forward(up<T>(x[i]), up<T>(y[i])));
}

template <class F, class T, class R, int N>
__global__ void banded(const T* x, const T* y, R* out, long long mid, long long inner, long long n) {
  EACH(i, 0, n / N) store<R, N>(out, i, joined<F, T, R, N>(load<T, N>(x, i), bands<T, N>(y, i, mid, inner)));
  EACH(i, n / N * N, n) out[i] = down<R>(F::forward(up<T>(x[i]), up<T>(y[i / inner % mid])));
}

template <class F, class T, class R>
__global__ void strided(const T* x, const T* y, R* out, SIX(d), SIX(x_), SIX(y_), long long n) {
  const long long d[] = SIX_OF(d), xs[] = SIX_OF(x_), ys[] = SIX_OF(y_), none[] = {0, 0, 0, 0, 0, 0};
  EACH(i, 0, n) {
    spot s = locate(i, d, xs, ys, none);
    out[i] = down<R>(F::forward(up<T>(x[s.x]), up<T>(y[s.y])));
  }
}
