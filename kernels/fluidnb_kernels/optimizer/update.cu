// Steps of optimizers, element by element: parameter and state updated in one pass.
//
// A step reads parameter, gradient and state once and writes parameter and state once: 3 elements moved for each of
// sgd's, 5 with one state, 7 with two, 9 with three. With little arithmetic, so all aim at the bandwidth of a
// device copy. Learning rate and powers are one element each and come in the precision in which a step is computed.
// An output may be its input's memory, so no pointer is __restrict__.
#include "fluid.cuh"

// What belongs to one element.
template <class C> struct element { C p, g, s, u, v; };
// What all elements share: variables of one element, and attributes as the operators' files give them.
template <class C> struct given { C rate, pow1, pow2, a, b, c, d, e; };

template <class F, class C> __device__ __forceinline__ given<C> prepared(
    const C* rate, const C* pow1, const C* pow2, double a, double b, double c, double d, double e) {
  given<C> k = {*rate, *pow1, *pow2, C(a), C(b), C(c), C(d), C(e)};
  F::prepare(k);
  return k;
}

// A parameter, its gradient and its state, before and after the step. Where many are one launch, these are the rows of a
// table, and `blocks` blocks from `first` on compute a row.
template <class T> struct parameter {
  const T *p, *g, *s, *u, *v;
  const wide_t<T> *rate, *pow1, *pow2;
  T *p_out, *s_out, *u_out, *v_out;
  double a, b, c, d, e;
  long long n, first, blocks;
};

template <class F, class T, int N>
__device__ __forceinline__ void steps(const parameter<T>& of, long long start, long long step) {
  typedef wide_t<T> C;
  const given<C> k = prepared<F, C>(of.rate, of.pow1, of.pow2, of.a, of.b, of.c, of.d, of.e);
  for (long long i = start; i < of.n / N; i += step) {
    pack<T, N> ps = load<T, N>(of.p, i), gs = load<T, N>(of.g, i), ss, us, vs;
    if constexpr (F::states > 0) ss = load<T, N>(of.s, i);
    if constexpr (F::states > 1) us = load<T, N>(of.u, i);
    if constexpr (F::states > 2) vs = load<T, N>(of.v, i);
#pragma unroll
    for (int j = 0; j < N; ++j) {
      element<C> x = {up<T>(ps.at[j]), up<T>(gs.at[j])};
      if constexpr (F::states > 0) x.s = up<T>(ss.at[j]);
      if constexpr (F::states > 1) x.u = up<T>(us.at[j]);
      if constexpr (F::states > 2) x.v = up<T>(vs.at[j]);
      F::step(x, k);
      ps.at[j] = down<T>(x.p);
      if constexpr (F::states > 0) ss.at[j] = down<T>(x.s);
      if constexpr (F::states > 1) us.at[j] = down<T>(x.u);
      if constexpr (F::states > 2) vs.at[j] = down<T>(x.v);
    }
    store<T, N>(of.p_out, i, ps);
    if constexpr (F::states > 0) store<T, N>(of.s_out, i, ss);
    if constexpr (F::states > 1) store<T, N>(of.u_out, i, us);
    if constexpr (F::states > 2) store<T, N>(of.v_out, i, vs);
  }
  for (long long i = of.n / N * N + start; i < of.n; i += step) {
    element<C> x = {up<T>(of.p[i]), up<T>(of.g[i])};
    if constexpr (F::states > 0) x.s = up<T>(of.s[i]);
    if constexpr (F::states > 1) x.u = up<T>(of.u[i]);
    if constexpr (F::states > 2) x.v = up<T>(of.v[i]);
    F::step(x, k);
    of.p_out[i] = down<T>(x.p);
    if constexpr (F::states > 0) of.s_out[i] = down<T>(x.s);
    if constexpr (F::states > 1) of.u_out[i] = down<T>(x.u);
    if constexpr (F::states > 2) of.v_out[i] = down<T>(x.v);
  }
}

template <class F, class T, int N>
__global__ void update(const T* p, const T* g, const T* s, const T* u, const T* v, const wide_t<T>* rate,
                       const wide_t<T>* pow1, const wide_t<T>* pow2, T* p_out, T* s_out, T* u_out, T* v_out, double a,
                       double b, double c, double d, double e, long long n) {
  const parameter<T> of = {p, g, s, u, v, rate, pow1, pow2, p_out, s_out, u_out, v_out, a, b, c, d, e, n, 0, 0};
  steps<F, T, N>(of, first_of_grid(), grid_step());
}

template <class F, class T, int N> __global__ void update_all(const parameter<T>* table, int count) {
  int low = 0, high = count - 1;  // the last row whose first block is this one or one before
  while (low < high) {
    int middle = (low + high + 1) / 2;
    if (table[middle].first <= blockIdx.x) low = middle;
    else high = middle - 1;
  }
  const parameter<T> of = table[low];
  steps<F, T, N>(of, (blockIdx.x - of.first) * blockDim.x + threadIdx.x, of.blocks * blockDim.x);
}

// The powers of beta1 and beta2 for the next step: a separate launch, since they may be updated in place.
template <class C>
__global__ void advance(const C* pow1, const C* pow2, C* next1, C* next2, double beta1, double beta2) {
  *next1 = *pow1 * C(beta1);
  *next2 = *pow2 * C(beta2);
}

template <class C> struct powers {
  const C *pow1, *pow2;
  C *next1, *next2;
  double beta1, beta2;
};

template <class C> __global__ void advance_all(const powers<C>* table, int count) {
  EACH(i, 0, count) {
    const powers<C> of = table[i];
    *of.next1 = *of.pow1 * C(of.beta1);
    *of.next2 = *of.pow2 * C(of.beta2);
  }
}

template <class C> __device__ __forceinline__ C larger(C x, C y) { return x > y || x != x ? x : y; }
template <class C> __device__ __forceinline__ C mixed(C old, C fresh, C stays) { return old * stays + fresh * (C(1) - stays); }

namespace f {

// STEP(name, states) { … } is the step of an operator: what it does to an element x, with what all elements share, k.
// A prepared one first changes k, once for all elements.
#define PREPARED_STEP(name, count, preparation)                                                        \
  struct name {                                                                                        \
    static constexpr int states = count;                                                               \
    template <class C> static __device__ void prepare(given<C>& k) { preparation; }                    \
    template <class C> static __device__ __forceinline__ void step(element<C>& x, const given<C>& k);  \
  };                                                                                                   \
  template <class C> __device__ __forceinline__ void name::step(element<C>& x, const given<C>& k)
#define STEP(name, count) PREPARED_STEP(name, count, (void)k)

// the rate with its factor e, and in d what remains of a parameter whose weight decay is -d
template <class C> __device__ void decaying(given<C>& k) {
  k.rate *= k.e;
  k.d = k.rate * k.d + C(1);
}
PREPARED_STEP(decay, 0, decaying(k)) { x.p *= k.d; }

// s: Moment1; u: Moment2; a, b: beta1, beta2; c: epsilon; d: minus the weight decay; e: factor of the rate
template <class C> __device__ void corrected(given<C>& k) {
  C root = sqrt(C(1) - k.pow2);
  decaying(k);
  k.c *= root;
  k.rate = root * k.rate / (C(1) - k.pow1);
}
PREPARED_STEP(adam, 2, corrected(k)) {
  x.s = mixed(x.s, x.g, k.a);
  x.u = mixed(x.u, x.g * x.g, k.b);
  x.p = x.p * k.d - x.s / (sqrt(x.u) + k.c) * k.rate;
}

// s: Moment; u: InfNorm; a, b: beta1, beta2; c: epsilon
PREPARED_STEP(adamax, 2, k.rate /= C(1) - k.pow1) {
  x.s = mixed(x.s, x.g, k.a);
  x.u = larger(x.u * k.b + k.c, C(fabs(x.g)));
  x.p -= x.s / x.u * k.rate;
}

STEP(same, 0) {}

STEP(sgd, 0) { x.p -= x.g * k.rate; }

// s: Velocity; a: mu; b: whether to look ahead; c: factor of the gradient; d: weight of the parameter in it
STEP(momentum, 1) {
  C g = x.g * k.c;
  if (k.d != C(0)) g += x.p * k.d;
  x.s = x.s * k.a + g;
  x.p -= (k.b > C(0) ? x.s * k.a + g : x.s) * k.rate;
}

// s: Moment; a: how much of it stays; b: how much of the square comes; c: epsilon
STEP(adagrad, 1) {
  x.s = x.s * k.a + x.g * x.g * k.b;
  x.p -= x.g * k.rate / (sqrt(x.s) + k.c);
}

// the proximal point of q; a: l1; b: l2
template <class C> __device__ __forceinline__ C shrunk(C q, const given<C>& k) {
  C size = C(fabs(q)) - k.rate * k.a;
  return (size <= C(0) ? C(0) : size) / (k.rate * k.b + C(1)) * C((q > C(0)) - (q < C(0)));
}
STEP(proximal_gd, 0) { x.p = shrunk(x.p - x.g * k.rate, k); }
STEP(proximal_adagrad, 1) {
  x.s += x.g * x.g;
  x.p = shrunk(x.p - x.g * k.rate / sqrt(x.s), k);
}

// s: AvgSquaredGrad; u: AvgSquaredUpdate; a: rho; b: epsilon; c: 0 where there is no rate
STEP(adadelta, 2) {
  x.s = mixed(x.s, x.g * x.g, k.a);
  C step = sqrt((x.u + k.b) / (x.s + k.b)) * x.g;
  x.u = mixed(x.u, step * step, k.a);
  x.p -= k.c > C(0) ? step * k.rate : step;
}

// s: MeanSquare; u: Moment; a: decay; b: epsilon; c: momentum
template <class C> __device__ __forceinline__ void scaled_step(element<C>& x, C level, const given<C>& k) {
  x.u = x.u * k.c + x.g * k.rate / sqrt(level);
  x.p -= x.u;
}
STEP(rmsprop, 2) {
  x.s = mixed(x.s, x.g * x.g, k.a);
  scaled_step(x, x.s + k.b, k);
}
// v: MeanGrad
STEP(rmsprop_centered, 3) {
  x.s = mixed(x.s, x.g * x.g, k.a);
  x.v = mixed(x.v, x.g, k.a);
  scaled_step(x, x.s + k.b - x.v * x.v, k);
}
// v: MeanGrad, which stays where d is 1 and is zero where there is none
STEP(rmsprop_kept, 3) {
  rmsprop::step(x, k);
  if (k.d == C(0)) x.v = C(0);
}

// s: SquaredAccumulator; u: LinearAccumulator; a: l1; b: twice l2; c: -lr_power
template <class C> __device__ __forceinline__ C powered(C x, C c) { return c == C(0.5) ? sqrt(x) : pow(x, c); }
STEP(ftrl, 2) {
  C total = x.s + x.g * x.g, root = powered(total, k.c);
  C z = x.u + x.g - (root - powered(x.s, k.c)) / k.rate * x.p;
  C inside = z < -k.a ? -k.a : z > k.a ? k.a : z;
  x.p = (inside - z) / (root / k.rate + k.b);
  x.s = total;
  x.u = z;
}
}  // namespace f

// ---- gradients that hold some rows: a block sums the values of one row, in their order

// rows[i] is what block i writes; its values are those at order[from[i]] to order[from[i + 1] - 1]
template <class T> __device__ __forceinline__ wide_t<T> row_sum(const long long* order, const long long* from,
                                                                const T* values, long long width, long long j) {
  wide_t<T> total = 0;
  for (long long k = from[blockIdx.x]; k < from[blockIdx.x + 1]; ++k) total += up<T>(values[order[k] * width + j]);
  return total;
}

template <class T> __global__ void zero(T* x, long long n) {
  EACH(i, 0, n) x[i] = down<T>(wide_t<T>(0));
}
template <class T>
__global__ void dense_rows(const long long* rows, const long long* order, const long long* from, const T* values, T* whole,
                           long long width) {
  for (long long j = threadIdx.x; j < width; j += blockDim.x)
    whole[rows[blockIdx.x] * width + j] = down<T>(row_sum(order, from, values, width, j));
}
template <class F, class T>
__global__ void update_rows(const long long* rows, const long long* order, const long long* from, const T* values,
                            const wide_t<T>* rate, const wide_t<T>* pow1, const wide_t<T>* pow2, T* p, T* s, T* u,
                            double a, double b, double c, double d, double e, long long width) {
  typedef wide_t<T> C;
  const given<C> k = prepared<F, C>(rate, pow1, pow2, a, b, c, d, e);
  for (long long j = threadIdx.x; j < width; j += blockDim.x) {
    long long at = rows[blockIdx.x] * width + j;
    element<C> x = {up<T>(p[at]), row_sum(order, from, values, width, j)};
    if constexpr (F::states > 0) x.s = up<T>(s[at]);
    if constexpr (F::states > 1) x.u = up<T>(u[at]);
    F::step(x, k);
    p[at] = down<T>(x.p);
    if constexpr (F::states > 0) s[at] = down<T>(x.s);
    if constexpr (F::states > 1) u[at] = down<T>(x.u);
  }
}
