// Reductions over axes, norms, and their gradients.
//
// Reductions are folds of lines: see axis_reduction.cuh for what they move and aim at. A gradient is spread over the line that was
// folded: spread reads one element of x where it needs it and writes one, reads those of the lines from caches, and aims
// at the bandwidth of a device copy.
#include "axis_reduction.cuh"

namespace r {
FOLD(total, sum, x, t)
FOLD(mean, sum, x, t / a)
FOLD(product, product, x, t)
FOLD(largest, largest, x, t)
FOLD(smallest, smallest, x, t)
FOLD(every, every, x, t)
FOLD(some, some, x, t)

// ---- norms; where a line is folded in pieces the first fold takes the powers and the last one the root

template <class C> __device__ __forceinline__ C size(C x) { return x < C(0) ? -x : x; }
FOLD(squares, sum, x * x, t)
FOLD(length, sum, x * x, sqrt(t))
FOLD(root, sum, x, sqrt(t))
FOLD(powers, sum, pow(size(x), a), t)
FOLD(power_length, sum, pow(size(x), a), pow(t, C(1) / a))
FOLD(power_root, sum, x, pow(t, C(1) / a))
FOLD(sizes, sum, size(x), t)
FOLD(counts, sum, x != C(0) ? C(1) : C(0), t)
FOLD(largest_size, largest, size(x), t)
FOLD(smallest_size, smallest, size(x), t)

// ---- the logarithm of a sum of exponentials is all that pieces need

struct logsumexp {
  typedef join::exponentials_too with;
  static constexpr bool two = false;
  template <class C> static __device__ __forceinline__ exponentials<C> of(C x, C, C) { return exponential(x); }
  template <class C> static __device__ __forceinline__ C give(exponentials<C> t, C) { return log(t.total) + t.top; }
};
}  // namespace r

// What x gets of y, the element of its line, and of g, that element's gradient. a and b are the operator's numbers.
#define SPREAD(name, of_g)                                                                                     \
  struct name {                                                                                                \
    template <class C> static __device__ __forceinline__ C of(C x, C y, C g, C a, C b) { return of_g; }        \
  };

// I counts elements: 32 bits where they suffice, for the sake of divisions.
template <class F, class T, class I>
__global__ void spread(const T* x, const T* y, const T* g, T* dx, double a, double b, I n, I inner, long long count) {
  typedef wide_t<T> C;
  EACH(i, 0, count) {
    I line = I(i) / (n * inner) * inner + I(i) % inner;
    dx[i] = down<T>(F::of(up<T>(x[i]), up<T>(y[line]), up<T>(g[line]), C(a), C(b)));
  }
}

namespace s {
template <class C> __device__ __forceinline__ C sign(C x) { return x > C(0) ? C(1) : x < C(0) ? C(-1) : x; }
SPREAD(share, g / a)
SPREAD(extreme, x == y ? g : C(0) * g)  // all that are equal to the result take the gradient
SPREAD(product, g * y / x)
SPREAD(logsumexp, exp(x - y) * g)
SPREAD(square, x * (g * C(2)))
SPREAD(length, x * (g / (y + a)))
SPREAD(size, sign(x) * g)
SPREAD(count, C(0))
SPREAD(extreme_size, sign(x) * (r::size(x) == y ? C(1) : C(0)) * g)
SPREAD(power, pow(r::size(x), b - C(1)) * sign(x) * (g * pow(y + a, C(1) - b)))
}  // namespace s
