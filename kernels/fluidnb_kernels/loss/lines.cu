// Losses of a row of classes or coordinates, and their gradients.
//
// cross_entropy of class numbers reads one element of each row and writes one; its gradient writes all of dX and reads
// next to nothing. The others read what they are given once (bpr_loss_grad twice, the second time from caches) and aim
// at the bandwidth of a device copy. A label that is no class makes the row's loss and gradient NaN: a kernel cannot
// raise.
#include "fold.cuh"

template <class C> __device__ __forceinline__ C above(C x, C low) { return x < low ? low : x; }  // NaN stays
template <class C> __device__ __forceinline__ C log_of(C p) { return above(log(p), C(-1e20)); }
template <class C> __device__ __forceinline__ C logistic(C x) { return C(1) / (C(1) + exp(-x)); }
template <class C> __device__ __forceinline__ C soft(C x) { return above(x, C(0)) + log1p(exp(x > C(0) ? -x : x)); }

// ---- cross_entropy of probabilities

template <class T>
__global__ void cross_entropy(const T* x, const long long* labels, T* y, long long ignore, long long classes,
                              long long rows) {
  typedef wide_t<T> C;
  EACH(row, 0, rows) {
    long long label = labels[row];
    C loss = label == ignore ? C(0) : C(NAN);
    if (label != ignore && label >= 0 && label < classes) loss = -log_of(up<T>(x[row * classes + label]));
    y[row] = down<T>(loss);
  }
}

template <class T>
__global__ void cross_entropy_grad(const T* x, const long long* labels, const T* g, T* dx, long long ignore,
                                   long long lines, long long n, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) if (line < lines) {
    long long label = labels[line];
    C slope = 0, other = 0;
    if (label != ignore) {
      if (label >= 0 && label < n) slope = -(up<T>(g[line]) / up<T>(x[line * n + label]));
      else other = NAN;
    }
    EACH_MEMBER(k, n, way) dx[line * n + k] = down<T>(k == label ? slope : other);
  }
}

namespace f {
FOLD_TWO(soft_part, sum, log_of(x) * y, t)
FOLD_TWO(soft, sum, log_of(x) * y, -t)
FOLD(total, sum, x, t)
FOLD(minus, sum, x, -t)
}  // namespace f

template <class T>
__global__ void soft_grad(const T* x, const T* labels, const T* g, T* dx, long long lines, long long n, long long inner,
                          int way) {
  EACH_LINE(line, lines, way) if (line < lines) {
    wide_t<T> slope = up<T>(g[line]);
    EACH_MEMBER(k, n, way) {
      long long i = line * n + k;
      dx[i] = down<T>(-(up<T>(labels[i]) / up<T>(x[i]) * slope));
    }
  }
}

// ---- bpr_loss

template <class T>
__global__ void bpr_loss(const T* x, const long long* labels, T* y, long long lines, long long n, long long inner,
                         int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    long long label = line < lines ? labels[line] : 0;
    bool known = label >= 0 && label < n;
    const T* row = x + line * n;
    C total = 0, own = line < lines && known ? up<T>(row[label]) : C(NAN);
    EACH_MEMBER(k, line < lines ? n : 0, way) total += soft(up<T>(row[k]) - own);
    total = over_line<join::sum>(total, way);
    if (line < lines && member(way) == 0) y[line] = down<T>((total - C(0.6931471805599453)) / C(n - 1));
  }
}

template <class T>
__global__ void bpr_loss_grad(const T* x, const long long* labels, const T* g, T* dx, long long lines, long long n,
                              long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    long long label = line < lines ? labels[line] : 0;
    bool known = label >= 0 && label < n;
    const T* row = x + line * n;
    C total = 0, own = line < lines && known ? up<T>(row[label]) : C(NAN);
    EACH_MEMBER(k, line < lines ? n : 0, way) if (k != label) total += logistic(up<T>(row[k]) - own);
    total = over_line<join::sum>(total, way);
    EACH_MEMBER(k, line < lines ? n : 0, way) {
      C slope = k == label ? -total : logistic(up<T>(row[k]) - own);
      dx[line * n + k] = down<T>(slope / C(n - 1) * up<T>(g[line]));
    }
  }
}

// ---- smooth_l1_loss; weights are null where there are none, diff where nobody wants it

template <class T>
__global__ void smooth_l1_loss(const T* x, const T* y, const T* inside, const T* outside, T* diff, T* loss,
                               double sigma2, long long lines, long long n, long long inner, int way) {
  typedef wide_t<T> C;
  C width = C(1 / sigma2);
  EACH_LINE(line, lines, way) {
    C total = 0;
    EACH_MEMBER(k, line < lines ? n : 0, way) {
      long long i = line * n + k;
      C d = up<T>(x[i]) - up<T>(y[i]);
      if (inside) d *= up<T>(inside[i]);
      if (diff) diff[i] = down<T>(d);
      C far = fabs(d), near = far > width ? width : far, term = (near * C(-0.5) + far) * near * C(sigma2);
      total += outside ? term * up<T>(outside[i]) : term;
    }
    total = over_line<join::sum>(total, way);
    if (line < lines && member(way) == 0) loss[line] = down<T>(total);
  }
}

template <class T>
__global__ void smooth_l1_loss_grad(const T* diff, const T* inside, const T* outside, const T* g, T* dx, T* dy,
                                    double sigma2, long long lines, long long n, long long inner, int way) {
  typedef wide_t<T> C;
  C width = C(1 / sigma2);
  EACH_LINE(line, lines, way) if (line < lines) EACH_MEMBER(k, n, way) {
    long long i = line * n + k;
    C d = up<T>(diff[i]), slope = (d < -width ? -width : d > width ? width : d) * C(sigma2);
    if (inside) slope *= up<T>(inside[i]);
    if (outside) slope *= up<T>(outside[i]);
    slope *= up<T>(g[line]);
    if (dx) dx[i] = down<T>(slope);
    if (dy) dy[i] = down<T>(-slope);
  }
}
