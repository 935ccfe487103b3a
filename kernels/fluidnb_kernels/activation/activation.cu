// Activations and their gradients: y = f(x), dx = f'(v) * g, element by element.
//
// Forward moves 2 elements of memory for each of x, backward 3; with little arithmetic, so both aim at the
// bandwidth of a device copy. v is what the gradient is written against, Out for some and X for the others, as the rows
// of the table say. a, b and c are the operator's float attributes in the order of its row. No pointer is __restrict__:
// an output may be its input's memory.
#include "fluid.cuh"

template <class F, class T, int N>
__global__ void unary(const T* x, T* y, double a, double b, double c, long long n) {
  typedef wide_t<T> C;
  EACH(i, 0, n / N) {
    pack<T, N> p = load<T, N>(x, i);
#pragma unroll
    for (int k = 0; k < N; ++k) p.at[k] = down<T>(F::forward(up<T>(p.at[k]), C(a), C(b), C(c)));
    store<T, N>(y, i, p);
  }
  EACH(i, n / N * N, n) y[i] = down<T>(F::forward(up<T>(x[i]), C(a), C(b), C(c)));
}

template <class F, class T, int N>
__global__ void unary_grad(const T* v, const T* g, T* dx, double a, double b, double c, long long n) {
  typedef wide_t<T> C;
  EACH(i, 0, n / N) {
    pack<T, N> p = load<T, N>(v, i), q = load<T, N>(g, i);
#pragma unroll
    for (int k = 0; k < N; ++k) q.at[k] = down<T>(F::backward(up<T>(p.at[k]), up<T>(q.at[k]), C(a), C(b), C(c)));
    store<T, N>(dx, i, q);
  }
  EACH(i, n / N * N, n) dx[i] = down<T>(F::backward(up<T>(v[i]), up<T>(g[i]), C(a), C(b), C(c)));
}

namespace f {

template <class C> __device__ C limited(C x, C low, C high) { return x < low ? low : x > high ? high : x; }
template <class C> __device__ C between(C x, C low, C high) { return x > low && x < high ? C(1) : C(0); }
template <class C> __device__ C logistic(C x) { return C(1) / (C(1) + exp(-x)); }
__device__ __forceinline__ float whole(float x) { return truncf(x); }
__device__ __forceinline__ double whole(double x) { return ::trunc(x); }
__device__ __forceinline__ int whole(int x) { return x; }
__device__ __forceinline__ long long whole(long long x) { return x; }
// log(1 + exp(x)) without overflow
template <class C> __device__ C soft(C x) { return (x > C(0) ? x : C(0)) + log1p(exp(x > C(0) ? -x : x)); }

#define FUNCTION(name, forward_of_x, backward_of_v)                                                              \
  struct name {                                                                                                  \
    template <class C> static __device__ __forceinline__ C forward(C x, C a, C b, C c) { return forward_of_x; }  \
    template <class C> static __device__ __forceinline__ C backward(C v, C g, C a, C b, C c) { return backward_of_v; } \
  };

FUNCTION(relu, x > C(0) || x != x ? x : C(0), v > C(0) ? g : C(0) * g)
FUNCTION(sigmoid, logistic(x), (C(1) - v) * v * g)
FUNCTION(tanh, ::tanh(x), g * (C(1) - v * v))
FUNCTION(exp, ::exp(x), g * v)
FUNCTION(log, ::log(x), g / v)
FUNCTION(sqrt, ::sqrt(x), g / v * C(0.5))
FUNCTION(rsqrt, C(1) / ::sqrt(x), v * v * v * C(-0.5) * g)
FUNCTION(square, x * x, v * C(2) * g)
FUNCTION(abs, x < C(0) ? -x : x, (v > C(0) ? C(1) : v < C(0) ? C(-1) : v) * g)
FUNCTION(reciprocal, C(1) / x, -(v * v * g))
FUNCTION(sin, ::sin(x), ::cos(v) * g)
FUNCTION(cos, ::cos(x), -(::sin(v) * g))
FUNCTION(floor, ::floor(x), C(0))
FUNCTION(ceil, ::ceil(x), C(0))
FUNCTION(round, copysign(::floor(fabs(x) + C(0.5)), x), C(0))
FUNCTION(trunc, whole(x), C(0))

// ---- in pieces

FUNCTION(brelu, limited(x, a, b), g * between(v, a, b))
FUNCTION(relu6, limited(x, C(0), a), g * between(v, C(0), a))
FUNCTION(leaky_relu, x > C(0) ? x : a * x, v >= C(0) ? g : a * g)
FUNCTION(hard_sigmoid, limited(x * a + b, C(0), C(1)), g * a * between(v, C(0), C(1)))
FUNCTION(hard_shrink, fabs(x) > a ? x : C(0) * x, fabs(v) > a ? g : C(0) * g)
FUNCTION(softshrink, x - limited(x, -a, a), fabs(v) > a ? g : C(0) * g)
FUNCTION(thresholded_relu, x > a ? x : C(0) * x, v > a ? g : C(0) * g)
FUNCTION(hard_swish, limited(x + c, C(0), a) * x / b, (v * between(v + c, C(0), a) + limited(v + c, C(0), a)) * g / b)

// ---- smooth ones

FUNCTION(logsigmoid, -soft(-x), g / (::exp(v) + C(1)))
FUNCTION(softplus, x * a > b ? x : soft(x * a) / a, v * a > b ? g : g * logistic(v * a))
FUNCTION(soft_relu, soft(limited(x, -a, a)), fabs(v) < a ? -(expm1(-v) * g) : C(0) * g)
FUNCTION(softsign, x / (fabs(x) + C(1)), g / ((fabs(v) + C(1)) * (fabs(v) + C(1))))
FUNCTION(stanh, ::tanh(x * a) * b, g * ((C(1) - ::tanh(v * a) * ::tanh(v * a)) * (a * b)))
FUNCTION(tanh_shrink, x - ::tanh(x), g * (::tanh(v) * ::tanh(v)))
FUNCTION(swish, x * logistic(x * a), ((C(1) - logistic(v * a)) * (v * a) + C(1)) * logistic(v * a) * g)
FUNCTION(silu, x * logistic(x), ((C(1) - logistic(v)) * v + C(1)) * logistic(v) * g)
FUNCTION(elu, x > C(0) ? x : expm1(x) * a, v > C(0) ? g : g * (::exp(v) * a))
FUNCTION(celu, x > C(0) ? x : expm1(x / a) * a, v > C(0) ? g : g * ::exp(v / a))
FUNCTION(selu, (x > C(0) ? x : expm1(x) * b) * a, g * (v > C(0) ? a : v + a * b))
FUNCTION(mish, x * ::tanh(x > a ? x : soft(x)),
         ((C(1) - ::tanh(v > a ? v : soft(v)) * ::tanh(v > a ? v : soft(v))) * (v > a ? C(1) : logistic(v)) * v +
          ::tanh(v > a ? v : soft(v))) * g)

// ---- the error function

FUNCTION(erf, ::erf(x), g * (C(1.1283791670955126) * ::exp(-v * v)))
template <class C> __device__ C share_below(C x) { return (::erf(x * C(0.7071067811865476)) + C(1)) * C(0.5); }
template <class C> __device__ C bent(C x) { return ::tanh(C(0.7978845608028654) * (x + C(0.044715) * x * x * x)); }
template <class C> __device__ C gelu_slope(C x) { return x * C(0.3989422804014327) * ::exp(C(-0.5) * x * x) + share_below(x); }
template <class C> __device__ C bent_slope(C x) {
  C t = bent(x), inner = C(0.7978845608028654) * x * (C(1) + C(0.134145) * x * x);
  return (inner * (C(1) - t * t) + t + C(1)) * C(0.5);
}
FUNCTION(gelu, x * (a > C(0) ? (bent(x) + C(1)) * C(0.5) : share_below(x)), g * (a > C(0) ? bent_slope(v) : gelu_slope(v)))

// ---- of angles, and logarithms

FUNCTION(tan, ::tan(x), g / (::cos(v) * ::cos(v)))
FUNCTION(acos, ::acos(x), -g / ::sqrt(C(1) - v * v))
FUNCTION(asin, ::asin(x), g / ::sqrt(C(1) - v * v))
FUNCTION(atan, ::atan(x), g / (v * v + C(1)))
FUNCTION(sinh, ::sinh(x), g * ::cosh(v))
FUNCTION(cosh, ::cosh(x), g * ::sinh(v))
FUNCTION(acosh, ::acosh(x), g / ::sqrt(v * v - C(1)))
FUNCTION(asinh, ::asinh(x), g / ::sqrt(v * v + C(1)))
FUNCTION(atanh, ::atanh(x), g / (C(1) - v * v))
FUNCTION(log1p, ::log1p(x), g / (v + C(1)))
FUNCTION(expm1, ::expm1(x), g * (v + C(1)))
FUNCTION(log2, ::log2(x), g / (v * C(0.6931471805599453)))
FUNCTION(log10, ::log10(x), g / (v * C(2.302585092994046)))

// ---- the gamma function: Stirling's series from 9 on, ones below it, the reflection at 1/2; in double, as it is on
// the host

__device__ inline double series(double z, const double* factors, int count) {
  double step = 1 / (z * z), total = 0;
  while (count--) total = total * step + factors[count];
  return total / z;
}
__device__ inline double from_whole(double x) { return x - rint(x); }
__device__ inline double lgamma_of(double x) {
  const double factors[] = {1. / 12, -1. / 360, 1. / 1260, -1. / 1680, 1. / 1188, -691. / 360360, 1. / 156};
  double z = x < 0.5 ? 1 - x : x, passed = 0;
  for (; z < 9; z += 1) passed += ::log(z);
  double value = (z - 0.5) * (::log(z) - 1) + 0.9189385332046727 - 0.5 + series(z, factors, 7) - passed;
  return x < 0.5 ? ::log(3.141592653589793 / fabs(::sin(3.141592653589793 * from_whole(x)))) - value : value;
}
__device__ inline double digamma_of(double x) {
  const double factors[] = {-1. / 12, 1. / 120, -1. / 252, 1. / 240, -1. / 132, 691. / 32760, -1. / 12};
  double z = x < 0.5 ? 1 - x : x, passed = 0;
  for (; z < 9; z += 1) passed += 1 / z;
  double value = ::log(z) - 0.5 / z + series(z, factors, 7) / z - passed;
  if (!(x < 0.5)) return value;
  double fraction = from_whole(x);
  return fraction == 0 ? double(NAN) : value - 3.141592653589793 / ::tan(3.141592653589793 * fraction);
}
__device__ inline double trigamma_of(double x) {
  const double factors[] = {1. / 6, -1. / 30, 1. / 42, -1. / 30, 5. / 66, -691. / 2730, 7. / 6};
  double z = x < 0.5 ? 1 - x : x, passed = 0;
  for (; z < 9; z += 1) passed += 1 / (z * z);
  double value = 1 / z + (0.5 + series(z, factors, 7)) / (z * z) + passed;
  double bow = 3.141592653589793 / ::sin(3.141592653589793 * from_whole(x));
  return x < 0.5 ? bow * bow - value : value;
}
FUNCTION(lgamma, C(lgamma_of(x)), g * C(digamma_of(v)))
FUNCTION(digamma, C(digamma_of(x)), g * C(trigamma_of(v)))

// eps is a; none where it is 0
template <class C> __device__ C inside(C x, C eps) { return eps > C(0) ? limited(x, eps, C(1) - eps) : x; }
FUNCTION(logit, ::log(inside(x, a) / (C(1) - inside(x, a))),
         v >= a && v <= C(1) - a ? g / (inside(v, a) * (C(1) - inside(v, a))) : C(0) * g)
}  // namespace f
