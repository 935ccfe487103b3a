// dot, cos_sim and squared_l2_distance: how alike the rows of two matrices are, and the gradients.
//
// Forward reads both matrices once and writes a few numbers of a row (squared_l2_distance the difference too); a
// gradient reads them once more and writes one of each side. All aim at the bandwidth of a device copy. Where Y is one
// row for all, its gradient is written for each row as wide_t<T> and added up by another launch.
#include "axis_reduction.cuh"
#include "row_grid.cuh"

#define OWN(k) EACH_MEMBER(k, line < lines ? n : 0, way)

namespace f {
FOLD_TWO(products, sum, x * y, t)
FOLD(total, sum, x, t)
}  // namespace f

template <class T>
__global__ void dot_grad(const T* x, const T* y, const T* g, T* dx, T* dy, long long width, long long rows) {
  EACH_ROW(r, rows) {
    wide_t<T> slope = up<T>(g[r]);
    ALONG(j, width) {
      long long i = r * width + j;
      if (dx) dx[i] = down<T>(slope * up<T>(y[i]));
      if (dy) dy[i] = down<T>(slope * up<T>(x[i]));
    }
  }
}

// ---- cosines: X has `rows` lines, Y as many or one

template <class T>
__global__ void cos_sim(const T* x, const T* y, T* out, T* x_length, T* y_length, long long rows, long long y_rows,
                        long long lines, long long n, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    const T *p = x + line * n, *q = y + (y_rows == 1 ? 0 : line * n);
    C xx = 0, yy = 0, xy = 0;
    OWN(k) {
      C v = line < rows ? up<T>(p[k]) : C(0), w = up<T>(q[k]);
      xx += v * v;
      yy += w * w;
      xy += v * w;
    }
    C a = sqrt(over_line<join::sum>(xx, way)), b = sqrt(over_line<join::sum>(yy, way));
    xy = over_line<join::sum>(xy, way);
    if (line >= lines || member(way)) continue;
    if (line < rows) {
      out[line] = down<T>(xy / (a * b));
      if (x_length) x_length[line] = down<T>(a);
    }
    if (y_length && line < y_rows) y_length[line] = down<T>(b);
  }
}

template <class T, class U>
__global__ void cos_sim_grad(const T* x, const T* y, const T* g, const T* out, const T* x_length, const T* y_length,
                             T* dx, U* dy, int one, long long width, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    const T* q = y + (one ? 0 : r * width);
    C a = up<T>(x_length[r]), b = up<T>(y_length[one ? 0 : r]), slope = up<T>(g[r]), pull = slope * up<T>(out[r]);
    C both = slope / (a * b), of_x = pull / (a * a), of_y = pull / (b * b);
    ALONG(j, width) {
      long long i = r * width + j;
      C v = up<T>(x[i]), w = up<T>(q[j]);
      if (dx) dx[i] = down<T>(both * w - of_x * v);
      if (dy) dy[i] = down<U>(both * v - of_y * w);
    }
  }
}

// ---- squares of distances

template <class T>
__global__ void distance(const T* x, const T* y, T* gap, T* out, int one, long long lines, long long n, long long inner,
                         int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    C total = 0;
    OWN(k) {
      C v = up<T>(x[line * n + k]) - up<T>(y[one ? k : line * n + k]);
      if (gap) gap[line * n + k] = down<T>(v);
      total += v * v;
    }
    total = over_line<join::sum>(total, way);
    if (line < lines && member(way) == 0) out[line] = down<T>(total);
  }
}

template <class T, class U>
__global__ void distance_grad(const T* gap, const T* g, T* dx, U* dy, long long width, long long rows) {
  EACH_ROW(r, rows) {
    wide_t<T> slope = up<T>(g[r]) * 2;
    ALONG(j, width) {
      wide_t<T> v = up<T>(gap[r * width + j]) * slope;
      if (dx) dx[r * width + j] = down<T>(v);
      if (dy) dy[r * width + j] = down<U>(-v);
    }
  }
}
