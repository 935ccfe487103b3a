// prelu and its gradients.
//
// Forward reads x and writes one element for each, the gradient of x reads x and dOut: both aim at the bandwidth of a
// device copy; slopes come from caches. The slope of element i is number i / inner % count. The gradient of the slopes
// is a fold of x [outer, count, inner] and dOut over all but the second dimension: see fold.cuh.
#include "fold.cuh"

namespace r {
FOLD(total, sum, x, t)
FOLD_TWO(slope, sum, (x > C(0) ? C(0) : x) * y, t)
}  // namespace r

template <class C> __device__ __forceinline__ C either(C x, C above, C below) { return x > C(0) ? above : below; }

template <class T>
__global__ void prelu(const T* x, const T* slopes, T* out, long long count, long long inner, long long n) {
  EACH(i, 0, n) {
    wide_t<T> value = up<T>(x[i]);
    out[i] = down<T>(either(value, value, value * up<T>(slopes[count == 1 ? 0 : i / inner % count])));
  }
}

template <class T>
__global__ void prelu_grad(const T* x, const T* slopes, const T* g, T* dx, long long count, long long inner,
                           long long n) {
  EACH(i, 0, n) {
    wide_t<T> slope = up<T>(g[i]);
    dx[i] = down<T>(either(up<T>(x[i]), slope, slope * up<T>(slopes[count == 1 ? 0 : i / inner % count])));
  }
}
