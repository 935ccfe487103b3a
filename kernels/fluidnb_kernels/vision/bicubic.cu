// Images in another size: each element from four neighbours along each axis.
//
// An image is [planes, h, w, inner]: inner is 1 for NCHW, the channels for NHWC. Neighbours and shares are tables of the
// binding, [4, oh] of rows and then [4, ow] of columns; threads go over rows of the result and along them. Forward reads
// 16 elements of X for one of Out, mostly from a cache. Neighbours rise, so backward gathers: what an element has given
// is in a window of dOut, where it is added up in a fixed order. Both aim at the bandwidth of a device copy.
#include "exact.cuh"
#include "row_grid.cuh"

const int TAPS = 4;

template <class T>
__global__ void bicubic(const T* x, const int* near, const wide_t<T>* share, T* out, long long h, long long w,
                        long long oh, long long ow, long long inner, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    const long long plane = r / oh, oy = r - plane * oh;
    ALONG(j, ow * inner) {
      const long long ox = quotient(j, inner), c = j - ox * inner;
      C total = 0;
      for (int k = 0; k < TAPS; k++) {
        const T* row = x + (plane * h + near[k * oh + oy]) * w * inner + c;
        C line = 0;
#pragma unroll
        for (int m = 0; m < TAPS; m++) {
          const long long at = TAPS * oh + m * ow + ox;
          line += up<T>(row[near[at] * inner]) * share[at];
        }
        total += line * share[k * oh + oy];
      }
      out[r * ow * inner + j] = down<T>(total);
    }
  }
}

// The share of element i of an axis in element k of the new size: at an edge several neighbours are the same.
template <class C> __device__ __forceinline__ C given(const int* near, const C* share, long long k, long long i,
                                                      long long size) {
  C total = 0;
#pragma unroll
  for (int m = 0; m < TAPS; m++) total += near[m * size + k] == i ? share[m * size + k] : C(0);
  return total;
}

// Element i of an axis has given to elements first[i] to last[i] - 1 of the new size.
template <class T>
__global__ void bicubic_grad(const T* g, const int* near, const int* first, const int* last, const wide_t<T>* share,
                             T* dx, long long h, long long w, long long oh, long long ow, long long inner,
                             long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    const long long plane = r / h, y = r - plane * h;
    ALONG(j, w * inner) {
      const long long x = quotient(j, inner), c = j - x * inner;
      C total = 0;
      for (long long oy = first[y]; oy < last[y]; oy++) {
        const T* row = g + (plane * oh + oy) * ow * inner + c;
        C line = 0;
        for (long long ox = first[h + x]; ox < last[h + x]; ox++)
          line += up<T>(row[ox * inner]) * given<C>(near + TAPS * oh, share + TAPS * oh, ox, x, ow);
        total += line * given<C>(near, share, oy, y, oh);
      }
      dx[r * w * inner + j] = down<T>(total);
    }
  }
}
