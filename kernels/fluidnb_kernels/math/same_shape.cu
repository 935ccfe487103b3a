// scale, clip with its gradient, sign, and sums of tensors: arithmetic of tensors of one shape.
//
// Each element of an operand is read once and one of the result is written: 2 elements of memory for scale, clip and
// sign, 3 for the gradient of clip, one more than there are terms for a sum of up to eight. All aim at the bandwidth of
// a device copy. No pointer is __restrict__: an output may be its input's memory.
#include "fluid.cuh"

// A number of the operator, or the one in memory where `at` is not null.
template <class T> __device__ __forceinline__ wide_t<T> number(const T* at, wide_t<T> given) { return at ? up<T>(*at) : given; }

// x * factor + bias, or (x + bias) * factor where `first` is not 0
template <class C> __device__ __forceinline__ C line(C x, C factor, C bias, int first) {
  return first ? (x + bias) * factor : x * factor + bias;
}

template <class T, int N>
__global__ void scale(const T* x, const T* factor_at, T* out, wide_t<T> factor, wide_t<T> bias, int first, long long n) {
  factor = number<T>(factor_at, factor);
  EACH(i, 0, n / N) {
    pack<T, N> p = load<T, N>(x, i);
#pragma unroll
    for (int k = 0; k < N; ++k) p.at[k] = down<T>(line(up<T>(p.at[k]), factor, bias, first));
    store<T, N>(out, i, p);
  }
  EACH(i, n / N * N, n) out[i] = down<T>(line(up<T>(x[i]), factor, bias, first));
}

// What is no number stays so.
template <class C> __device__ __forceinline__ C limited(C x, C low, C high) {
  x = x > low || x != x ? x : low;
  return x < high || x != x ? x : high;
}

template <class T, int N>
__global__ void clip(const T* x, const T* low_at, const T* high_at, T* out, wide_t<T> low, wide_t<T> high, long long n) {
  low = number<T>(low_at, low), high = number<T>(high_at, high);
  EACH(i, 0, n / N) {
    pack<T, N> p = load<T, N>(x, i);
#pragma unroll
    for (int k = 0; k < N; ++k) p.at[k] = down<T>(limited(up<T>(p.at[k]), low, high));
    store<T, N>(out, i, p);
  }
  EACH(i, n / N * N, n) out[i] = down<T>(limited(up<T>(x[i]), low, high));
}

template <class C> __device__ __forceinline__ C between(C x, C low, C high, C g) { return g * C(x > low && x < high); }

template <class T, int N>
__global__ void clip_grad(const T* x, const T* g, const T* low_at, const T* high_at, T* dx, wide_t<T> low,
                          wide_t<T> high, long long n) {
  low = number<T>(low_at, low), high = number<T>(high_at, high);
  EACH(i, 0, n / N) {
    pack<T, N> p = load<T, N>(x, i), q = load<T, N>(g, i);
#pragma unroll
    for (int k = 0; k < N; ++k) q.at[k] = down<T>(between(up<T>(p.at[k]), low, high, up<T>(q.at[k])));
    store<T, N>(dx, i, q);
  }
  EACH(i, n / N * N, n) dx[i] = down<T>(between(up<T>(x[i]), low, high, up<T>(g[i])));
}

template <class C> __device__ __forceinline__ C sign_of(C x) { return x > C(0) ? C(1) : x < C(0) ? C(-1) : x == C(0) ? C(0) : x; }

template <class T, int N> __global__ void sign(const T* x, T* out, long long n) {
  EACH(i, 0, n / N) {
    pack<T, N> p = load<T, N>(x, i);
#pragma unroll
    for (int k = 0; k < N; ++k) p.at[k] = down<T>(sign_of(up<T>(p.at[k])));
    store<T, N>(out, i, p);
  }
  EACH(i, n / N * N, n) out[i] = down<T>(sign_of(up<T>(x[i])));
}

// The sum of the first of eight, in their order.
template <class C> __device__ __forceinline__ C first_of(int count, C x0, C x1, C x2, C x3, C x4, C x5, C x6, C x7) {
  const C x[] = {x0, x1, x2, x3, x4, x5, x6, x7};
  C sum = x0;
#pragma unroll
  for (int j = 1; j < 8; ++j)
    if (j < count) sum += x[j];
  return sum;
}

// The sum of `count` tensors out of eight, in their order.
template <class T, int N>
__global__ void total(const T* x0, const T* x1, const T* x2, const T* x3, const T* x4, const T* x5, const T* x6,
                      const T* x7, T* out, int count, long long n) {
  const T* x[] = {x0, x1, x2, x3, x4, x5, x6, x7};
  EACH(i, 0, n / N) {
    wide_t<T> sum[N];
    pack<T, N> p = load<T, N>(x[0], i);
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] = up<T>(p.at[k]);
#pragma unroll
    for (int j = 1; j < 8; ++j) {
      if (j >= count) break;
      p = load<T, N>(x[j], i);
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += up<T>(p.at[k]);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) p.at[k] = down<T>(sum[k]);
    store<T, N>(out, i, p);
  }
  EACH(i, n / N * N, n) {
    wide_t<T> sum = up<T>(x[0][i]);
#pragma unroll
    for (int j = 1; j < 8; ++j)
      if (j < count) sum += up<T>(x[j][i]);
    out[i] = down<T>(sum);
  }
}
