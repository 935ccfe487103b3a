// Quadrilaterals of images as upright rectangles, and the gradient.
//
// A thread makes one pixel of a region's result, which is a row, in all channels: where it comes from is computed once.
// The matrix of a region is computed by each of its threads, in registers, which costs less than to read it. Backward
// adds with atomics, in an order that may change from run to run, in float where X is stored in half precision.
#include "exact.cuh"
#include "row_grid.cuh"

#define NEAR C(1e-4)

template <class C> struct quadrilateral {
  C x[4], y[4];

  // Rounded as on the host: a product is rounded before it is added.
  __device__ __forceinline__ quadrilateral(const C* corners, C scale) {
    for (int k = 0; k < 4; k++) {
      x[k] = times(corners[2 * k], scale);
      y[k] = times(corners[2 * k + 1], scale);
    }
  }
  __device__ __forceinline__ C length(int k) const {
    const int n = (k + 1) & 3;
    return sqrt((x[k] - x[n]) * (x[k] - x[n]) + (y[k] - y[n]) * (y[k] - y[n]));
  }
  // The point that a column and a row of the result come from; no number where there is none.
  __device__ __forceinline__ void source(int column, int row, int height, int width, C& at_x, C& at_y) const {
    const C wide = (length(0) + length(2)) / 2, high = (length(1) + length(3)) / 2;
    const C columns = floor(wide * C(height - 1) / high + C(0.5)) + 1;
    const C w = (columns < C(width) ? columns : C(width)) - 1, h = C(height - 1);
    const C dx1 = x[1] - x[2], dx2 = x[3] - x[2], dx3 = x[0] - x[1] + x[2] - x[3];
    const C dy1 = y[1] - y[2], dy2 = y[3] - y[2], dy3 = y[0] - y[1] + y[2] - y[3];
    const C both = times(dx1, dy2) - times(dx2, dy1);
    const C a = (times(dx3, dy2) - times(dx2, dy3)) / both / w, b = (times(dx1, dy3) - times(dx3, dy1)) / both / h;
    const C u = (x[1] - x[0] + a * w * x[1]) / w * column + (x[3] - x[0] + b * h * x[3]) / h * row + x[0];
    const C v = (y[1] - y[0] + a * w * y[1]) / w * column + (y[3] - y[0] + b * h * y[3]) / h * row + y[0];
    const C under = a * column + b * row + 1;
    at_x = u / under;
    at_y = v / under;
  }
  __device__ __forceinline__ bool holds(C px, C py) const {
    int crossed = 0;
    bool on_edge = false;
    for (int k = 0; k < 4; k++) {
      const int n = (k + 1) & 3;
      const C left = x[k] < x[n] ? x[k] : x[n], right = x[k] < x[n] ? x[n] : x[k];
      const C top = y[k] < y[n] ? y[k] : y[n], bottom = y[k] < y[n] ? y[n] : y[k];
      if (fabs(y[k] - y[n]) < NEAR) {
        on_edge |= fabs(py - y[k]) < NEAR && fabs(py - y[n]) < NEAR && px > left - NEAR && px < right + NEAR;
        continue;
      }
      const C cross = (py - y[k]) * (x[n] - x[k]) / (y[n] - y[k]) + x[k];
      on_edge |= fabs(cross - px) < NEAR && py > top - NEAR && py < bottom + NEAR;
      crossed += py >= top + NEAR && py - bottom <= NEAR && cross - px > NEAR;
    }
    return on_edge || (crossed & 1);
  }
};

// An axis: the two pixels around a point that is in the image or half a pixel beyond it, and the share of the second.
template <class C>
__device__ __forceinline__ bool around(C at, long long size, long long& low, long long& high, C& share) {
  if (!(at >= C(-0.5) - NEAR && at - (C(size) - C(0.5)) <= NEAR)) return false;
  at = at < 0 ? C(0) : at > C(size - 1) ? C(size - 1) : at;
  low = (long long)at;
  high = low + 1 < size ? low + 1 : size - 1;
  share = at - C(low);
  return true;
}

#define SOURCE                                                                                      \
  const quadrilateral<C> quad(rois + 8 * r, C(scale));                                              \
  const int i = int(j) / ow, k = int(j) - i * ow;                                                   \
  C px, py, fx, fy;                                                                                 \
  long long x0, x1, y0, y1;                                                                         \
  quad.source(k, i, oh, ow, px, py);                                                                \
  const bool seen = quad.holds(px, py) && around(px, w, x0, x1, fx) && around(py, h, y0, y1, fy);   \
  const long long to = r * channels * oh * ow + j, plane = (long long)image[r] * channels * h * w;

template <class T>
__global__ void warped(const T* x, const wide_t<T>* rois, const int* image, T* out, long long channels, long long h,
                       long long w, int oh, int ow, double scale, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) ALONG(j, (long long)oh * ow) {
    SOURCE
    for (long long c = 0; c < channels; c++) {
      C value = 0;
      if (seen) {
        const T* p = x + plane + c * h * w;
        value = (1 - fy) * (1 - fx) * up<T>(p[y0 * w + x0]) + fy * (1 - fx) * up<T>(p[y1 * w + x0]) +
                fy * fx * up<T>(p[y1 * w + x1]) + (1 - fy) * fx * up<T>(p[y0 * w + x1]);
      }
      out[to + c * oh * ow] = down<T>(value);
    }
  }
}

template <class T>
__global__ void warped_grad(const T* g, const wide_t<T>* rois, const int* image, wide_t<T>* total, long long channels,
                            long long h, long long w, int oh, int ow, double scale, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) ALONG(j, (long long)oh * ow) {
    SOURCE
    if (!seen) continue;
    for (long long c = 0; c < channels; c++) {
      const C slope = up<T>(g[to + c * oh * ow]);
      C* p = total + plane + c * h * w;
      atomicAdd(p + y0 * w + x0, slope * (1 - fy) * (1 - fx));
      atomicAdd(p + y1 * w + x0, slope * fy * (1 - fx));
      atomicAdd(p + y1 * w + x1, slope * fy * fx);
      atomicAdd(p + y0 * w + x1, slope * (1 - fy) * fx);
    }
  }
}
