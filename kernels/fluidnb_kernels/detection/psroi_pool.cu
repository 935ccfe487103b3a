// Regions of images as small images whose parts come from channels of their own: means of parts, and their gradient.
//
// A thread makes one element of a region's result, which is a row; its plane of X is read by no other part of the same
// region. Forward aims at the bandwidth of reading. Regions overlap, so backward adds with atomics, in an order that may
// change from run to run, in float where X is stored in half precision.
#include "exact.cuh"
#include "row_grid.cuh"

// Halves away from zero.
template <class C> __device__ __forceinline__ C rounded(C x) {
  const C size = floor((x < 0 ? -x : x) + C(0.5));
  return x < 0 ? -size : size;
}

// Where part i of a region's pixels along an axis starts and ends; nothing where the region is none.
template <class C>
__device__ __forceinline__ void edges(C low, C high, C scale, int parts, int i, long long size, long long& from,
                                      long long& to) {
  const C start = times(rounded(low), scale), length = times(rounded(high) + 1, scale) - start;
  const C step = (length > C(0.1) ? length : C(0.1)) / C(parts);
  const C first = floor(times(C(i), step) + start), last = ceil(times(C(i + 1), step) + start);
  from = first > 0 ? first < C(size) ? (long long)first : size : 0;
  to = last > 0 ? last < C(size) ? (long long)last : size : 0;
}

#define PART                                                                                                    \
  const int i = int(quotient(j, (long long)ow) % oh), k = int(j - quotient(j, (long long)ow) * ow);             \
  const long long plane = (image[r] * channels * oh * ow + j) * h * w;                                          \
  long long top, bottom, left, right;                                                                           \
  edges(rois[4 * r + 1], rois[4 * r + 3], wide_t<T>(scale), oh, i, h, top, bottom);                             \
  edges(rois[4 * r], rois[4 * r + 2], wide_t<T>(scale), ow, k, w, left, right);                                 \
  const bool any = bottom > top && right > left;                                                                \
  const wide_t<T> area = any ? wide_t<T>((bottom - top) * (right - left)) : wide_t<T>(1);

template <class T>
__global__ void means(const T* x, const wide_t<T>* rois, const int* image, T* out, long long channels, long long h,
                      long long w, int oh, int ow, double scale, long long rows) {
  EACH_ROW(r, rows) ALONG(j, channels * oh * ow) {
    PART
    wide_t<T> total = 0;
    for (long long y = top; y < bottom; y++)
      for (long long e = y * w + left; e < y * w + right; e++) total += up<T>(x[plane + e]);
    out[r * channels * oh * ow + j] = down<T>(total / area);
  }
}

template <class T>
__global__ void spread(const T* g, const wide_t<T>* rois, const int* image, wide_t<T>* total, long long channels,
                       long long h, long long w, int oh, int ow, double scale, long long rows) {
  EACH_ROW(r, rows) ALONG(j, channels * oh * ow) {
    PART
    const wide_t<T> share = up<T>(g[r * channels * oh * ow + j]) / area;
    for (long long y = top; y < bottom; y++)
      for (long long e = y * w + left; e < y * w + right; e++) atomicAdd(total + plane + e, share);
  }
}
