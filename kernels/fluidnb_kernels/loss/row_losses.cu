// Losses of a row of classes or coordinates, and their gradients.
//
// cross_entropy of class numbers and nll_loss read one element of each row and write one; their gradients write all of
// dX and read next to nothing. The others read what they are given once (bpr_loss_grad twice, the second time from
// caches) and aim at the bandwidth of a device copy. A label that is no class makes the row's loss and gradient NaN: a
// kernel cannot raise.
#include "axis_reduction.cuh"
#include "row_grid.cuh"

template <class C> __device__ __forceinline__ C above(C x, C low) { return x < low ? low : x; }  // NaN stays
template <class C> __device__ __forceinline__ C log_of(C p) { return above(log(p), C(-1e20)); }
template <class C> __device__ __forceinline__ C logistic(C x) { return C(1) / (C(1) + exp(-x)); }
template <class C> __device__ __forceinline__ C soft(C x) { return above(x, C(0)) + log1p(exp(x > C(0) ? -x : x)); }

// ---- cross_entropy of probabilities; `match` gets the probability of each row's label, and is null where nobody wants it

template <class T>
__global__ void cross_entropy(const T* x, const long long* labels, T* y, T* match, long long ignore, long long classes,
                              long long rows) {
  typedef wide_t<T> C;
  EACH(row, 0, rows) {
    long long label = labels[row];
    C p = label == ignore ? C(0) : C(NAN), loss = p;
    if (label != ignore && label >= 0 && label < classes) {
      p = up<T>(x[row * classes + label]);
      loss = -log_of(p);
    }
    y[row] = down<T>(loss);
    if (match) match[row] = down<T>(p);
  }
}

// x holds all probabilities, or those of the labels alone where `matched` says so
template <class T>
__global__ void cross_entropy_grad(const T* x, const long long* labels, const T* g, T* dx, long long ignore, int matched,
                                   long long lines, long long n, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) if (line < lines) {
    long long label = labels[line];
    C slope = 0, other = 0;
    if (label != ignore) {
      if (label >= 0 && label < n) slope = -(up<T>(g[line]) / up<T>(x[matched ? line : line * n + label]));
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

// ---- nll_loss: x is [outer, classes, inner], labels are [outer, inner]; `weight` is null where all classes count 1

template <class C, class T>
__device__ __forceinline__ C share_of(const T* weight, long long label, long long ignore, long long classes) {
  if (label == ignore) return C(0);
  if (label < 0 || label >= classes) return C(NAN);
  return weight ? up<T>(weight[label]) : C(1);
}

// Each block leaves the sum of its losses and that of their weights; `y` gets each loss, and is null where nobody wants it.
template <class T>
__global__ void nll_loss(const T* x, const long long* labels, const T* weight, T* y, wide_t<T>* parts, long long ignore,
                         long long classes, long long inner, long long n) {
  typedef wide_t<T> C;
  C losses = 0, shares = 0;
  EACH(i, 0, n) {
    long long label = labels[i];
    C share = share_of<C>(weight, label, ignore, classes), loss = share;
    if (share == share && label != ignore) loss = -up<T>(x[(i / inner * classes + label) * inner + i % inner]) * share;
    if (y) y[i] = down<T>(loss);
    losses += loss;
    shares += share;
  }
  losses = over_block<join::sum>(losses);
  shares = over_block<join::sum>(shares);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = losses;
    parts[gridDim.x + blockIdx.x] = shares;
  }
}

// One block adds up what the others left; `y` is null where each label has a loss of its own.
template <class T>
__global__ void nll_total(const wide_t<T>* parts, T* y, T* total, int mean, int blocks) {
  typedef wide_t<T> C;
  C losses = 0, shares = 0;
  for (int k = threadIdx.x; k < blocks; k += blockDim.x) {
    losses += parts[k];
    shares += parts[blocks + k];
  }
  losses = over_block<join::sum>(losses);
  shares = over_block<join::sum>(shares);
  if (threadIdx.x == 0) {
    if (y) *y = down<T>(mean && shares != C(0) ? losses / shares : losses);
    if (total) *total = down<T>(shares);
  }
}

// g is one number for all labels where its step is 0; `total` is null where the loss was not divided by it
template <class T>
__global__ void nll_loss_grad(const T* g, const long long* labels, const T* weight, const T* total, T* dx,
                              long long ignore, long long classes, long long inner, long long step, long long rows) {
  typedef wide_t<T> C;
  C whole = total ? up<T>(*total) : C(1);
  if (whole == C(0)) whole = C(1);
  EACH_ROW(row, rows) {
    long long k = row % classes;
    ALONG(j, inner) {
      long long i = row / classes * inner + j, label = labels[i];
      C share = share_of<C>(weight, label, ignore, classes);
      dx[row * inner + j] = down<T>(k == label || share != share ? -share * (up<T>(g[i * step]) / whole) : C(0));
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
