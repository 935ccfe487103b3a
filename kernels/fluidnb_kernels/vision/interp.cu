// Images in another size: each element from two neighbours along each axis, or from the nearest one.
//
// An image is [planes, h, w, inner]: inner is 1 for NCHW, the channels for NHWC. Neighbours and shares are tables of the
// binding, one after the other for rows and columns; threads go over rows of the result and along them. Forward moves
// each element of X (from a cache, but for the first time) and of Out once, backward each of dOut and dX: both aim at
// the bandwidth of a device copy. Neighbours rise, so backward gathers: what an element has given is in a window of
// dOut, where it is added up in a fixed order, by a warp where windows are large.
#include "exact.cuh"
#include "reduce.cuh"
#include "row_grid.cuh"

__device__ __forceinline__ long long after(int low, long long size) { return low + 1 < size ? low + 1 : size - 1; }

template <class T>
__global__ void bilinear(const T* x, const int* low, const float* share, T* out, long long h, long long w, long long oh,
                         long long ow, long long inner, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    const long long plane = r / oh, oy = r - plane * oh;
    const C down_high = share[oy], down_low = 1.f - share[oy];
    const T* top = x + (plane * h + low[oy]) * w * inner;
    const T* bottom = x + (plane * h + after(low[oy], h)) * w * inner;
    ALONG(j, ow * inner) {
      const long long ox = quotient(j, inner), c = j - ox * inner;
      const int left = low[oh + ox];
      const long long first = left * inner + c, second = after(left, w) * inner + c;
      const C high = share[oh + ox], rest = 1.f - share[oh + ox];
      const C a = up<T>(top[first]) * down_low + up<T>(bottom[first]) * down_high;
      const C b = up<T>(top[second]) * down_low + up<T>(bottom[second]) * down_high;
      out[r * ow * inner + j] = down<T>(a * rest + b * high);
    }
  }
}

template <class W>
__global__ void nearest(const void* from, const int* low, void* to, long long h, long long w, long long oh, long long ow,
                        long long inner, long long rows) {
  EACH_ROW(r, rows) {
    const long long plane = r / oh, oy = r - plane * oh;
    const W* x = static_cast<const W*>(from) + (plane * h + low[oy]) * w * inner;
    ALONG(j, ow * inner) {
      const long long ox = quotient(j, inner);
      static_cast<W*>(to)[r * ow * inner + j] = x[low[oh + ox] * inner + (j - ox * inner)];
    }
  }
}

// The share of element i of an axis in element k of the new size.
template <class C, bool NEAREST>
__device__ __forceinline__ C given(const int* low, const float* share, long long k, long long i, long long size) {
  if (NEAREST) return 1;
  const C high = share[k], rest = 1.f - share[k];
  return low[k] < i ? high : i == size - 1 ? rest + high : rest;
}

// first[i] is the first element of the new size whose neighbour is i or one behind it.
template <class T, bool NEAREST>
__global__ void interp_grad(const T* g, const int* low, const int* first, const float* share, T* dx, long long h,
                            long long w, long long oh, long long ow, long long inner, int lanes, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    const long long plane = r / h, y = r - plane * h;
    const long long up_to = first[y + 1];
    ALONG(j, w * inner * lanes) {
      const long long e = lanes == 1 ? j : j >> 5, x = quotient(e, inner), c = e - x * inner;
      const int* starts = first + h + 1;
      const long long from = starts[NEAREST || x == 0 ? x : x - 1] + (lanes == 1 ? 0 : j & 31);
      C total = 0;
      for (long long oy = first[NEAREST || y == 0 ? y : y - 1]; oy < up_to; oy++) {
        C line = 0;
        const T* row = g + (plane * oh + oy) * ow * inner + c;
        for (long long ox = from; ox < starts[x + 1]; ox += lanes)
          line += up<T>(row[ox * inner]) * given<C, NEAREST>(low + oh, share + oh, ox, x, w);
        total += line * given<C, NEAREST>(low, share, oy, y, h);
      }
      if (lanes > 1) total = over_warp<join::sum>(total);
      if (lanes == 1 || (j & 31) == 0) dx[r * w * inner + e] = down<T>(total);
    }
  }
}
