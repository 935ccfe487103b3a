// prelu and its gradients.
//
// Forward reads x and writes one element for each, the gradient of x reads x and dOut: both aim at the bandwidth of a
// device copy; slopes come from caches. Threads are arranged in rows and along them: a row has one slope, of `count` in turn, or
// one for each of its elements where count is 0. The gradient of the slopes is a fold of x [outer, count, inner] and
// dOut over all but the second dimension: see axis_reduction.cuh.
#include "axis_reduction.cuh"
#include "row_grid.cuh"

namespace r {
FOLD(total, sum, x, t)
FOLD_TWO(slope, sum, (x > C(0) ? C(0) : x) * y, t)
}  // namespace r

template <class C> __device__ __forceinline__ C either(C x, C above, C below) { return x > C(0) ? above : below; }

template <class T>
__global__ void prelu(const T* x, const T* slopes, T* out, long long count, long long width, long long rows) {
  EACH_ROW(r, rows) {
    const T* own = count ? slopes + r % count : slopes;
    ALONG(j, width) {
      wide_t<T> value = up<T>(x[r * width + j]);
      out[r * width + j] = down<T>(either(value, value, value * up<T>(own[count ? 0 : j])));
    }
  }
}

template <class T>
__global__ void prelu_grad(const T* x, const T* slopes, const T* g, T* dx, long long count, long long width,
                           long long rows) {
  EACH_ROW(r, rows) {
    const T* own = count ? slopes + r % count : slopes;
    ALONG(j, width) {
      wide_t<T> slope = up<T>(g[r * width + j]);
      dx[r * width + j] = down<T>(either(up<T>(x[r * width + j]), slope, slope * up<T>(own[count ? 0 : j])));
    }
  }
}
