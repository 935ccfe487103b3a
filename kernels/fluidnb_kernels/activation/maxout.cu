// maxout and its gradient: x is [outer, groups, inner], Out [outer, inner].
//
// Forward reads each element of x once and writes one of `groups`; the gradient reads x, Out and dOut and writes dx. A
// thread takes one element of Out, threads side by side take neighbours along inner, and of the groups of one thread
// the second read of an element hits a cache: both aim at the bandwidth of device memory.
#include "row_grid.cuh"

template <class T>
__global__ void largest_of(const T* x, T* out, long long groups, long long inner, long long rows) {
  EACH_ROW(r, rows) ALONG(j, inner) {
    const T* own = x + r * groups * inner + j;
    wide_t<T> best = up<T>(*own);
    for (long long k = 1; k < groups; ++k) {
      wide_t<T> value = up<T>(own[k * inner]);
      if (value > best || value != value) best = value;
    }
    out[r * inner + j] = down<T>(best);
  }
}

// The first of the largest takes the gradient.
template <class T>
__global__ void largest_of_grad(const T* x, const T* out, const T* g, T* dx, long long groups, long long inner,
                                long long rows) {
  EACH_ROW(r, rows) ALONG(j, inner) {
    long long at = r * groups * inner + j;
    wide_t<T> best = up<T>(out[r * inner + j]), slope = up<T>(g[r * inner + j]);
    bool found = false;
    for (long long k = 0; k < groups; ++k, at += inner) {
      bool here = !found && up<T>(x[at]) == best;
      found |= here;
      dx[at] = down<T>(slope * wide_t<T>(here));
    }
  }
}
