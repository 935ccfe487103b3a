// layer_norm and its gradient over rows that fit into the registers of a warp or of a block.
//
// From memory come one read of each operand and one write of the result, in accesses of 16 bytes: both aim at the
// bandwidth of a device copy. The variance is that of differences to the mean. See norm.cu for rows of other kinds, and
// for the gradients of scale and bias. Scale, bias and moments come as wide_t<T>.
#include "register_rows.cuh"

enum { SCALE = 1, BIAS = 2, INVERSE = 8 };  // flags, as Python numbers them

template <class T, int N, int K>
__global__ void ONE_HELD row_norm(const T* x, const wide_t<T>* scale, const wide_t<T>* bias, T* y, wide_t<T>* mean,
                         wide_t<T>* spread, int flags, double epsilon, long long lines, int n, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    const int count = line < lines ? n : 0;
    share<T, N, K> v = load_share<T, N, K>(x + line * n, count, way);
    C total = 0, squares = 0;
    EACH_HELD(k, i) total += v.at[k][i];
    const C middle = over_line<join::sum>(total, way) / C(n);
    EACH_HELD(k, i) {
      v.at[k][i] -= middle;
      if (is_held<N>(k, count, way)) squares += v.at[k][i] * v.at[k][i];
    }
    const C variance = over_line<join::sum>(squares, way) / C(n), factor = C(1) / sqrt(variance + C(epsilon));
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (!is_held<N>(k, count, way)) continue;
      pack<C, N> times, plus;
      if (flags & SCALE) times = loaded<C, N>(scale, pack_of<N>(k, way));
      if (flags & BIAS) plus = loaded<C, N>(bias, pack_of<N>(k, way));
#pragma unroll
      for (int i = 0; i < N; ++i) {
        v.at[k][i] *= factor;
        if (flags & SCALE) v.at[k][i] *= times.at[i];
        if (flags & BIAS) v.at[k][i] += plus.at[i];
      }
    }
    leave<T, N, K>(y + line * n, count, way, v);
    if (line < lines && member(way) == 0) {
      mean[line] = middle;
      spread[line] = flags & INVERSE ? factor : variance;
    }
  }
}

template <class T, int N, int K>
__global__ void TWO_HELD row_grad(const T* x, const T* g, const wide_t<T>* mean, const wide_t<T>* inverse, const wide_t<T>* scale,
                         T* dx, int flags, long long lines, int n, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    const int count = line < lines ? n : 0;
    share<T, N, K> v = load_share<T, N, K>(x + line * n, count, way), slope = load_share<T, N, K>(g + line * n, count, way);
    const C m = line < lines ? mean[line] : C(0), s = line < lines ? inverse[line] : C(0);
    C shift = 0, bend = 0;
#pragma unroll
    for (int k = 0; k < K; ++k) {
      if (!is_held<N>(k, count, way)) continue;
      pack<C, N> times;
      if (flags & SCALE) times = loaded<C, N>(scale, pack_of<N>(k, way));
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (flags & SCALE) slope.at[k][i] *= times.at[i];
        v.at[k][i] = (v.at[k][i] - m) * s;
        shift += slope.at[k][i];
        bend += slope.at[k][i] * v.at[k][i];
      }
    }
    shift = over_line<join::sum>(shift, way) / C(n);
    bend = over_line<join::sum>(bend, way) / C(n);
    EACH_HELD(k, i) v.at[k][i] = (slope.at[k][i] - v.at[k][i] * bend - shift) * s;
    leave<T, N, K>(dx + line * n, count, way, v);
  }
}
