// Tensors of any strides: the coordinates of an element by its number, and its offset.
//
// A launch has six dimensions at most. The size of each but the outermost comes as n | m << 32, where m and five bits
// of `shifts` divide by n: i / n = (high half of i * m, plus i) >> s, for all i below 2^31. Steps are in elements.
#pragma once
#include "fluid.cuh"

#define SIZES                                                                                                   \
  unsigned long long n1, unsigned long long n2, unsigned long long n3, unsigned long long n4, unsigned long long n5, \
      unsigned shifts
#define STEPS(name)                                                                                           \
  long long name##0, long long name##1, long long name##2, long long name##3, long long name##4, long long name##5
#define ALL_SIZES {n1, n2, n3, n4, n5}
#define ALL_STEPS(name) {name##0, name##1, name##2, name##3, name##4, name##5}

// The offsets of element i in two tensors; only the first D dimensions are in use.
template <int D>
__device__ __forceinline__ void locate(unsigned i, const unsigned long long (&sizes)[5], unsigned shifts,
                                       const long long (&f)[6], const long long (&t)[6], long long& from,
                                       long long& to) {
#pragma unroll
  for (int d = D - 1; d > 0; --d) {
    unsigned n = unsigned(sizes[d - 1]), m = unsigned(sizes[d - 1] >> 32);
    unsigned q = (__umulhi(i, m) + i) >> (shifts >> (5 * (d - 1)) & 31u), rest = i - q * n;
    from += rest * f[d];
    to += rest * t[d];
    i = q;
  }
  from += i * f[0];
  to += i * t[0];
}
