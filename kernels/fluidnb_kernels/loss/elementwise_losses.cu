// Losses of each element, and their gradients: up to four operands beside each other, up to two results.
//
// Every operand is read once and every result written once, with a handful of arithmetic beside it: all aim at the
// bandwidth of a device copy. Pointers of results that nobody wants are null.
#include "axis_reduction.cuh"

template <class F, class T>
__global__ void terms(const T* x, const T* y, const T* z, const T* w, T* one, T* two, double a, double b, long long n) {
  typedef wide_t<T> C;
  EACH(i, 0, n) {
    C first = F::first(up<T>(x[i]), up<T>(y[i]), up<T>(z[i]), up<T>(w[i]), C(a), C(b));
    if (one) one[i] = down<T>(first);
    if (two) two[i] = down<T>(F::second(first, up<T>(x[i]), up<T>(y[i]), up<T>(z[i]), C(a)));
  }
}

namespace f {
// One result of x, y, z, w and the operator's numbers a and b, and another of the first one.
#define TERMS(name, expression, other)                                                                                \
  struct name {                                                                                                       \
    template <class C> static __device__ __forceinline__ C first(C x, C y, C z, C w, C a, C b) { return expression; } \
    template <class C> static __device__ __forceinline__ C second(C one, C x, C y, C z, C a) { return other; }        \
  };

template <class C> __device__ __forceinline__ C above(C x, C low) { return x < low ? low : x; }
template <class C> __device__ __forceinline__ C held(C x, C low, C high) { return x < low ? low : x > high ? high : x; }
template <class C> __device__ __forceinline__ C signs(C label) { return label * C(2) - C(1); }
template <class C> __device__ __forceinline__ C logistic(C x) { return C(1) / (C(1) + exp(-x)); }
// log(1 + exp(x)) without overflow
template <class C> __device__ __forceinline__ C soft(C x) { return above(x, C(0)) + log1p(exp(x > C(0) ? -x : x)); }
// x² / 2 up to a width, a line beyond
template <class C> __device__ __forceinline__ C bowl(C x, C width) {
  C far = fabs(x), near = far > width ? width : far;
  return (near * C(-0.5) + far) * near;
}
template <class C> __device__ __forceinline__ C bent(C v) {
  C gap = above(C(1) - v, C(0));
  return v < C(-1) ? v * C(-4) : gap * gap;
}

// ---- yes or no; b is 1 + epsilon where a is epsilon

TERMS(log_loss, -(log(x + a) * y + log(b - x) * (C(1) - y)), one)
TERMS(log_loss_grad, z * ((C(1) - y) / (b - x) - y / (x + a)), one)
TERMS(hinge_loss, above(C(1) - x * signs(y), C(0)), one)
TERMS(hinge_loss_grad, -(z * signs(y) * (x * signs(y) < C(1) ? C(1) : C(0))), one)

TERMS(bce_loss, (y - C(1)) * above(log(C(1) - x), C(-100)) - y * above(log(x), C(-100)), one)
TERMS(bce_loss_grad, (x - y) / above((C(1) - x) * x, C(1e-12)) * z, one)

// ---- a click, and what a teacher thinks of it, in one label: a sum of both, how many there are, and the loss

template <class C> __device__ __forceinline__ C both(C y) { return y < C(-1) ? C(0) : y < C(0) ? C(1) : y; }
template <class C> __device__ __forceinline__ C opinions(C y) { return y < C(0) ? C(1) : C(2); }
TERMS(taught, soft(x) * opinions(y) - x * both(y), one)
TERMS(taught_grad, x > a && x < b ? (logistic(x) * opinions(y) - both(y)) * z : C(0) * z, one)

// ---- parabolas that become lines

TERMS(huber_loss, y - x, bowl(one, a))
TERMS(huber_loss_grad, held(x, -a, a) * y, -one)
TERMS(modified_huber_loss, x * signs(y), bent(one))
TERMS(modified_huber_loss_grad, held(C(1) - x, C(0), C(2)) * C(-2) * signs(y) * z, one)

// ---- what should come before what

TERMS(rank_loss, soft(x - y) - z * (x - y), one)
TERMS(rank_loss_grad, (logistic(x - y) - z) * w, -one)
TERMS(margin_rank_loss, above(a - (x - y) * z, C(0)), a - (x - y) * z > C(0) ? C(1) : C(0))
TERMS(margin_rank_loss_grad, z * x * y, -one)

// ---- distributions

TERMS(kldiv_loss, y <= C(0) ? C(0) : (log(y) - x) * y, one)
TERMS(scaled, x * a, one)
}  // namespace f

// ---- sigmoid_cross_entropy_with_logits; `counts` is null, or how many labels are not `ignore`

template <class T>
__global__ void sigmoid_loss(const T* x, const T* labels, const wide_t<T>* counts, T* y, double ignore, long long n) {
  typedef wide_t<T> C;
  C share = counts ? f::above(counts[0], C(1e-5)) : C(1);
  EACH(i, 0, n) {
    C v = up<T>(x[i]), label = up<T>(labels[i]);
    C loss = log1p(exp(-fabs(v))) + f::above(v, C(0)) - v * label;
    y[i] = down<T>(loss * (label != C(ignore) ? C(1) : C(0)) / share);
  }
}

template <class T>
__global__ void sigmoid_loss_grad(const T* x, const T* labels, const T* g, const wide_t<T>* counts, T* dx, double ignore,
                                  long long n) {
  typedef wide_t<T> C;
  C share = counts ? f::above(counts[0], C(1e-5)) : C(1);
  EACH(i, 0, n) {
    C label = up<T>(labels[i]), slope = (f::logistic(up<T>(x[i])) - label) * up<T>(g[i]);
    dx[i] = down<T>(slope * (label != C(ignore) ? C(1) : C(0)) / share);
  }
}

namespace f {
FOLD(others, sum, x != a ? C(1) : C(0), t)
FOLD(total, sum, x, t)
FOLD(mean, sum, x, t / a)
FOLD_TWO(kldiv, sum, y <= C(0) ? C(0) : (log(y) - x) * y, t)
FOLD_TWO(kldiv_mean, sum, y <= C(0) ? C(0) : (log(y) - x) * y, t / a)
}  // namespace f

// g is one number for all elements where its step is 0
template <class T>
__global__ void kldiv_loss_grad(const T* target, const T* g, T* dx, double share, long long step, long long n) {
  typedef wide_t<T> C;
  EACH(i, 0, n) dx[i] = down<T>(f::above(up<T>(target[i]), C(0)) * C(share) * up<T>(g[i * step]));
}

// ---- label_smooth; without a prior distribution all classes have the same share

template <class T>
__global__ void label_smooth(const T* x, const T* prior, T* y, double keep, double epsilon, long long classes,
                             long long n) {
  typedef wide_t<T> C;
  C same = C(epsilon / classes);
  EACH(i, 0, n) y[i] = down<T>(up<T>(x[i]) * C(keep) + (prior ? up<T>(prior[i % classes]) * C(epsilon) : same));
}
