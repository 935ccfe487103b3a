// Evenly spaced numbers: range and linspace.
//
// One write for an element and two operations, each rounded by itself as the host does: bound by writing.
#include "rounded.cuh"

// out[i] = start + i * step in C; the last one is `last` where `ends` says so
template <class T, class C>
__global__ void spaced(T* out, C start, C step, C last, int ends, long long n) {
  EACH(i, 0, n) out[i] = down<T>(wide_t<T>(ends && i == n - 1 ? last : sum_of(start, product_of(C(i), step))));
}
