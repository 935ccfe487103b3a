// Regions of images as small images: read at evenly spaced points (align), or the largest pixel of each part (pool).
//
// A thread computes one element of a region's result: threads go over rows, columns and channels of a region, which is
// a row. Forward gathers a few pixels of X for each element of Out: regions overlap, so they come from a cache, and it
// aims at the bandwidth of writing. What the regions have in common on their image is known when the kernel runs, so
// backward adds with atomics, in an order that may change from run to run, in float where X is stored in half precision.
#include "exact.cuh"
#include "row_grid.cuh"

// The image of each region; more regions than are counted have none, which stops the kernel.
__global__ void owners(const long long* counts, int* image, long long images, long long count) {
  EACH(r, 0, count) {
    long long n = 0, end = counts[0];
    while (r >= end) {
      if (++n == images) __trap();
      end += counts[n];
    }
    image[r] = int(n);
  }
}

// ---- align: `parts` elements along an axis of `size` pixels, each the mean of `each` points

template <class C> struct axis {
  C start, step;
  long long each, size;

  __device__ __forceinline__ axis(C from, C to, int parts, long long pixels, C scale, int ratio, bool aligned) {
    const C half = aligned ? C(0.5) : C(0);
    start = times(from, scale) - half;
    C length = times(to, scale) - half - start;
    if (!aligned && !(length >= 1)) length = 1;
    step = length / C(parts);
    each = !isfinite(step) ? 0 : ratio > 0 ? ratio : step > 0 ? (long long)ceil(step) : 0;
    size = pixels;
  }
  __device__ __forceinline__ C many() const { return each > 0 ? C(each) : C(1); }
  // 0; no number where the region is none.
  __device__ __forceinline__ C doubt() const { return (start - start) + (step - step); }
  __device__ __forceinline__ C at(int part, long long k) const {
    return start + part * step + (k + C(0.5)) * step / C(each);
  }
  // The points of a part that may be inside, so that a region far larger than its image costs no more than the image.
  __device__ __forceinline__ long long first(int part) const {
    const C k = (-1 - start - part * step) / step * C(each) - 2;
    return step > 0 && k > 0 ? (long long)(k < C(each) ? k : C(each)) : 0;
  }
  __device__ __forceinline__ long long last(int part) const {
    const C k = (C(size) - start - part * step) / step * C(each) + 2;
    return step > 0 && k < C(each) ? (long long)(k < 0 ? C(0) : k) : each;
  }
};

// A point between pixels: the first of them, and the share of the one behind it; false outside.
template <class C>
__device__ __forceinline__ bool between(C at, long long size, long long& low, long long& high, C& share) {
  if (!(at >= -1 && at <= C(size))) return false;
  at = at < 0 ? C(0) : at;
  low = (long long)at < size ? (long long)at : size - 1;
  high = low + 1 < size ? low + 1 : size - 1;
  share = low == size - 1 ? C(0) : at - C(low);
  return true;
}

#define REGION(r, j)                                                         \
  const long long c = quotient(j, (long long)oh * ow), at = j - c * oh * ow; \
  const int i = int(at) / ow, k = int(at) - i * ow;                          \
  const long long plane = (image[r] * channels + c) * h * w;

#define AXES                                                                              \
  const wide_t<T>* box = rois + 4 * r;                                                    \
  const axis<wide_t<T>> along_y(box[1], box[3], oh, h, wide_t<T>(scale), ratio, aligned); \
  const axis<wide_t<T>> along_x(box[0], box[2], ow, w, wide_t<T>(scale), ratio, aligned); \
  const wide_t<T> points = along_y.many() * along_x.many();

template <class T>
__global__ void align(const T* x, const wide_t<T>* rois, const int* image, T* out, long long channels, long long h,
                      long long w, int oh, int ow, double scale, int ratio, int aligned, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    AXES
    ALONG(j, channels * oh * ow) {
      REGION(r, j)
      const T* pixels = x + plane;
      C total = 0, fy, fx;
      long long y0, y1, x0, x1;
      for (long long a = along_y.first(i), to = along_y.last(i); a < to; a++) {
        if (!between(along_y.at(i, a), h, y0, y1, fy)) continue;
        for (long long b = along_x.first(k), end = along_x.last(k); b < end; b++) {
          if (!between(along_x.at(k, b), w, x0, x1, fx)) continue;
          total += (1 - fy) * ((1 - fx) * up<T>(pixels[y0 * w + x0]) + fx * up<T>(pixels[y0 * w + x1])) +
                   fy * ((1 - fx) * up<T>(pixels[y1 * w + x0]) + fx * up<T>(pixels[y1 * w + x1]));
        }
      }
      out[r * channels * oh * ow + j] = down<T>(total / points + along_y.doubt() + along_x.doubt());
    }
  }
}

template <class T>
__global__ void align_grad(const T* g, const wide_t<T>* rois, const int* image, wide_t<T>* total, long long channels,
                           long long h, long long w, int oh, int ow, double scale, int ratio, int aligned,
                           long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    AXES
    ALONG(j, channels * oh * ow) {
      REGION(r, j)
      C* pixels = total + plane;
      const C slope = up<T>(g[r * channels * oh * ow + j]) / points;
      C fy, fx;
      long long y0, y1, x0, x1;
      for (long long a = along_y.first(i), to = along_y.last(i); a < to; a++) {
        if (!between(along_y.at(i, a), h, y0, y1, fy)) continue;
        for (long long b = along_x.first(k), end = along_x.last(k); b < end; b++) {
          if (!between(along_x.at(k, b), w, x0, x1, fx)) continue;
          atomicAdd(pixels + y0 * w + x0, slope * (1 - fy) * (1 - fx));
          atomicAdd(pixels + y0 * w + x1, slope * (1 - fy) * fx);
          atomicAdd(pixels + y1 * w + x0, slope * fy * (1 - fx));
          atomicAdd(pixels + y1 * w + x1, slope * fy * fx);
        }
      }
    }
  }
}

// ---- pool

// Halves away from zero.
template <class C> __device__ __forceinline__ long long rounded(C x) {
  const C size = floor((x < 0 ? -x : x) + C(0.5));
  return (long long)(x < 0 ? -size : size);
}
__device__ __forceinline__ long long held(long long i, long long size) { return i < 0 ? 0 : i < size ? i : size; }

// Where part i of a region's pixels along an axis starts and ends.
__device__ __forceinline__ void edges(long long first, long long last, int parts, int i, long long size, long long& from,
                                      long long& to) {
  const float step = float(last - first + 1 > 1 ? last - first + 1 : 1) / float(parts);
  from = held((long long)floorf(times(float(i), step)) + first, size);
  to = held((long long)ceilf(times(float(i + 1), step)) + first, size);
}

template <class T>
__global__ void pool(const T* x, const wide_t<T>* rois, const int* image, T* out, long long* spots, long long channels,
                     long long h, long long w, int oh, int ow, double scale, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    long long side[4];
    for (int k = 0; k < 4; k++) side[k] = rounded(times(rois[4 * r + k], C(scale)));
    ALONG(j, channels * oh * ow) {
      REGION(r, j)
      long long top, bottom, left, right, spot = -1;
      edges(side[1], side[3], oh, i, h, top, bottom);
      edges(side[0], side[2], ow, k, w, left, right);
      C best = 0;
      for (long long y = top; y < bottom; y++)
        for (long long e = y * w + left; e < y * w + right; e++) {
          const C value = up<T>(x[plane + e]);
          if (spot < 0 || value > best || (value != value && best == best)) {
            best = value;
            spot = e;
          }
        }
      const long long to = r * channels * oh * ow + j;
      if (out) out[to] = down<T>(best);
      if (spots) spots[to] = spot;
    }
  }
}

template <class T>
__global__ void pool_grad(const T* g, const long long* spots, const int* image, wide_t<T>* total, long long channels,
                          long long plane, long long parts, long long rows) {
  EACH_ROW(r, rows) ALONG(j, channels * parts) {
    const long long e = r * channels * parts + j, spot = spots[e];
    if (spot >= plane) __trap();
    if (spot >= 0) atomicAdd(total + (image[r] * channels + quotient(j, parts)) * plane + spot, up<T>(g[e]));
  }
}
