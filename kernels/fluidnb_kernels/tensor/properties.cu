// Tests of numbers: whether elements are finite, infinite or none, one by one or for all of them together.
//
// One by one moves an element in and a byte out; together it reads each element once and writes a byte where one is
// met: both aim at the bandwidth of reading. All threads that meet one write the same byte, so their order is nothing
// that anybody sees. Loads are 16 bytes wide where N says so.
#include "fluid.cuh"

namespace f {
template <class C> __device__ __forceinline__ bool none(C x) { return x != x; }
struct isnan {
  template <class C> static __device__ __forceinline__ bool of(C x) { return none(x); }
};
struct isinf {
  template <class C> static __device__ __forceinline__ bool of(C x) { return fabs(x) == C(INFINITY); }
};
struct isfinite {
  template <class C> static __device__ __forceinline__ bool of(C x) { return fabs(x) < C(INFINITY); }
};
struct odd {  // elements that are not finite
  template <class C> static __device__ __forceinline__ bool of(C x) { return !(fabs(x) < C(INFINITY)); }
};
}  // namespace f

template <class F, class T, int N>
__global__ void tested(const T* x, bool* out, long long n) {
  EACH(i, 0, n / N) {
    pack<T, N> p = load<T, N>(x, i);
    pack<bool, N> q;
#pragma unroll
    for (int k = 0; k < N; ++k) q.at[k] = F::of(up<T>(p.at[k]));
    store<bool, N>(out, i, q);
  }
  EACH(i, n / N * N, n) out[i] = F::of(up<T>(x[i]));
}

// *out = value where any element passes
template <class F, class T, int N>
__global__ void met(const T* x, bool* out, bool value, long long n) {
  bool hit = false;
  EACH(i, 0, n / N) {
    pack<T, N> p = load<T, N>(x, i);
#pragma unroll
    for (int k = 0; k < N; ++k) hit |= F::of(up<T>(p.at[k]));
  }
  EACH(i, n / N * N, n) hit |= F::of(up<T>(x[i]));
  if (hit) *out = value;
}
