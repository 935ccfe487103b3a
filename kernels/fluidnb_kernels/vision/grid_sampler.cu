// Images read at the points of a grid, with the gradients of images and of points.
//
// Threads go over the points of an image, and a thread takes SOME channels at its point, so that neighbours are
// computed once for them. Forward reads each point once for SOME channels, gathers four elements of X for one of
// Output, and writes that once; where points are near each other the four come from a cache and it aims at the bandwidth
// of writing. The gradient of points adds up all channels in order. That of images adds with atomics, in an order that
// may change from run to run: 4 reads and writes for an element of dOutput, in float where X is stored in half precision.
#include "exact.cuh"
#include "row_grid.cuh"

enum flags { NEAREST = 1, BORDER = 2, REFLECTION = 4, CORNERS = 8 };
const int SOME = 8, NEIGHBOURS = 4;

// A point of -1 to 1 as a place along an axis; slope becomes how the place moves with the point.
template <class C> __device__ __forceinline__ C placed(C at, int size, int how, C& slope) {
  const bool corners = how & CORNERS;
  const C last = size - 1;
  C p = corners ? times(at + 1, last / 2) : (times(at + 1, C(size)) - 1) / 2;
  slope = (corners ? last : C(size)) / 2;
  if (how & REFLECTION) {
    const C edge = corners ? C(0) : C(0.5), period = corners ? 2 * last : C(2) * size;
    C turned = p + edge;
    if (turned < 0) slope = -slope;
    turned = turned < 0 ? -turned : turned;
    turned -= times(floor(turned / (period < 1 ? C(1) : period)), period);
    if (turned > period - turned) slope = -slope;
    p = (turned > period - turned ? period - turned : turned) - edge;
  }
  if (how & (BORDER | REFLECTION)) {
    if (!(p >= 0 && p <= last)) slope = 0;
    p = p < 0 ? C(0) : p > last ? last : p;
  }
  return p;
}

// The neighbours of a point: where they are in a plane (-1 outside), their shares, and how these move with the point.
template <class C> struct spots {
  int at[NEIGHBOURS];
  C share[NEIGHBOURS], by_x[NEIGHBOURS], by_y[NEIGHBOURS];

  __device__ __forceinline__ void add(int k, C y, C x, int h, int w, C of_y, C of_x, C turn_y, C turn_x) {
    at[k] = y >= 0 && y < h && x >= 0 && x < w ? int(y) * w + int(x) : -1;
    share[k] = of_y * of_x;
    by_x[k] = turn_x * of_y;
    by_y[k] = turn_y * of_x;
  }
  __device__ __forceinline__ spots(const C* point, int h, int w, int how) {
    C slope_x, slope_y;
    const C x = placed(point[0], w, how, slope_x), y = placed(point[1], h, how, slope_y);
    if (how & NEAREST) {
      add(0, rint(y), rint(x), h, w, C(1), C(1), C(0), C(0));
#pragma unroll
      for (int k = 1; k < NEIGHBOURS; k++) add(k, C(-1), C(-1), h, w, C(0), C(0), C(0), C(0));
      return;
    }
    const C y0 = floor(y), x0 = floor(x), fy = y - y0, fx = x - x0;
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++) {
      const int down = k / 2, right = k % 2;
      add(k, y0 + down, x0 + right, h, w, down ? fy : 1 - fy, right ? fx : 1 - fx, down ? slope_y : -slope_y,
          right ? slope_x : -slope_x);
    }
  }
};

// Row r: an image and SOME of its channels.
#define CHANNELS_OF(r)                                                          \
  const long long parts = (channels + SOME - 1) / SOME, n = r / parts;          \
  const long long from = (r - n * parts) * SOME;                                \
  const long long to = from + SOME < channels ? from + SOME : channels;

template <class T>
__global__ void sampled(const T* x, const wide_t<T>* grid, T* out, long long channels, int h, int w, long long points,
                        int how, long long rows) {
  typedef wide_t<T> C;
  const long long plane = (long long)h * w;
  EACH_ROW(r, rows) {
    CHANNELS_OF(r)
    ALONG(p, points) {
      const spots<C> near(grid + 2 * (n * points + p), h, w, how);
      for (long long c = n * channels + from; c < n * channels + to; c++) {
        C total = 0;
#pragma unroll
        for (int k = 0; k < NEIGHBOURS; k++)
          if (near.at[k] >= 0) total += up<T>(x[c * plane + near.at[k]]) * near.share[k];
        out[c * points + p] = down<T>(total);
      }
    }
  }
}

template <class T>
__global__ void image_grad(const T* g, const wide_t<T>* grid, wide_t<T>* total, long long channels, int h, int w,
                           long long points, int how, long long rows) {
  typedef wide_t<T> C;
  const long long plane = (long long)h * w;
  EACH_ROW(r, rows) {
    CHANNELS_OF(r)
    ALONG(p, points) {
      const spots<C> near(grid + 2 * (n * points + p), h, w, how);
      for (long long c = n * channels + from; c < n * channels + to; c++) {
        const C slope = up<T>(g[c * points + p]);
#pragma unroll
        for (int k = 0; k < NEIGHBOURS; k++)
          if (near.at[k] >= 0) atomicAdd(total + c * plane + near.at[k], slope * near.share[k]);
      }
    }
  }
}

// A row is an image.
template <class T>
__global__ void point_grad(const T* x, const T* g, const wide_t<T>* grid, wide_t<T>* dgrid, long long channels, int h,
                           int w, long long points, int how, long long rows) {
  typedef wide_t<T> C;
  const long long plane = (long long)h * w;
  EACH_ROW(n, rows) ALONG(p, points) {
    const long long at = 2 * (n * points + p);
    const spots<C> near(grid + at, h, w, how);
    C dx = 0, dy = 0;
    for (long long c = n * channels; c < (n + 1) * channels; c++) {
      const C slope = up<T>(g[c * points + p]);
#pragma unroll
      for (int k = 0; k < NEIGHBOURS; k++)
        if (near.at[k] >= 0) {
          const C seen = up<T>(x[c * plane + near.at[k]]) * slope;
          dx += seen * near.by_x[k];
          dy += seen * near.by_y[k];
        }
    }
    dgrid[at] = dx;
    dgrid[at + 1] = dy;
  }
}
