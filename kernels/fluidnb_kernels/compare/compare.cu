// Comparisons and logic with Fluid's broadcast; the results are bool.
//
// Each moves two elements in, one where Y is a band that fits into the caches, and a byte out, and aims at the bandwidth of a
// device copy.
#include "broadcast.cuh"

namespace f {
#define TEST(name, of_x_and_y)                                                                              \
  struct name {                                                                                             \
    template <class C> static __device__ __forceinline__ bool forward(C x, C y) { return of_x_and_y; }      \
  };
TEST(less_than, x < y)
TEST(less_equal, x <= y)
TEST(greater_than, x > y)
TEST(greater_equal, x >= y)
TEST(equal, x == y)
TEST(not_equal, x != y)
TEST(logical_and, x && y)
TEST(logical_or, x || y)
TEST(logical_xor, x != y)
}  // namespace f

template <int N> __global__ void logical_not(const bool* x, bool* out, long long n) {
  EACH(i, 0, n / N) {
    pack<bool, N> p = load<bool, N>(x, i);
#pragma unroll
    for (int k = 0; k < N; ++k) p.at[k] = !p.at[k];
    store<bool, N>(out, i, p);
  }
  EACH(i, n / N * N, n) out[i] = !x[i];
}
