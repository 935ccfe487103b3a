// softmax and its gradient over rows that fit into the registers of a warp or of a block.
//
// From memory come one read of each operand and one write of the result, in accesses of 16 bytes, and one exponential
// is computed for an element: both aim at the bandwidth of a device copy. See softmax.cu for lines of other kinds.
#include "register_rows.cuh"

template <class C> __device__ __forceinline__ C above(C x, C low) { return x < low ? low : x; }  // NaN stays

template <class T, int N, int K>
__global__ void softmax(const T* x, T* y, long long lines, int n, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    const int count = line < lines ? n : 0;
    share<T, N, K> v = load_share<T, N, K>(x + line * n, count, way);
    C top = ends<C>::low(), total = 0;
    EACH_HELD(k, i) if (is_held<N>(k, count, way)) top = join::largest::both(top, v.at[k][i]);
    top = over_line<join::largest>(top, way);
    EACH_HELD(k, i) if (is_held<N>(k, count, way)) {
      v.at[k][i] = exp(above(v.at[k][i] - top, C(-64)));
      total += v.at[k][i];
    }
    const C part = C(1) / over_line<join::sum>(total, way);
    EACH_HELD(k, i) v.at[k][i] *= part;
    leave<T, N, K>(y + line * n, count, way, v);
  }
}

template <class T, int N, int K>
__global__ void TWO_HELD softmax_grad(const T* y, const T* g, T* dx, long long lines, int n, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    const int count = line < lines ? n : 0;
    const share<T, N, K> v = load_share<T, N, K>(y + line * n, count, way);
    share<T, N, K> slope = load_share<T, N, K>(g + line * n, count, way);
    C total = 0;
    EACH_HELD(k, i) total += v.at[k][i] * slope.at[k][i];
    total = over_line<join::sum>(total, way);
    EACH_HELD(k, i) slope.at[k][i] = (slope.at[k][i] - total) * v.at[k][i];
    leave<T, N, K>(dx + line * n, count, way, slope);
  }
}
