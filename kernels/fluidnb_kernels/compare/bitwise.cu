// Logic on each bit of whole numbers and of bool, with Fluid's broadcast.
//
// Each moves two elements in and one out, and aims at the bandwidth of a device copy.
#include "broadcast.cuh"

namespace f {
#define BITS(name, of_x_and_y)                                                                              \
  struct name {                                                                                             \
    template <class C> static __device__ __forceinline__ C forward(C x, C y) { return C(of_x_and_y); }      \
  };
BITS(bitwise_and, x & y)
BITS(bitwise_or, x | y)
BITS(bitwise_xor, x ^ y)
}  // namespace f

template <class T> __device__ __forceinline__ T inverted(T x) { return T(~x); }
__device__ __forceinline__ bool inverted(bool x) { return !x; }

template <class T, int N> __global__ void bitwise_not(const T* x, T* out, long long n) {
  EACH(i, 0, n / N) {
    pack<T, N> p = load<T, N>(x, i);
#pragma unroll
    for (int k = 0; k < N; ++k) p.at[k] = inverted(p.at[k]);
    store<T, N>(out, i, p);
  }
  EACH(i, n / N * N, n) out[i] = inverted(x[i]);
}
