// Arithmetic of two tensors with Fluid's broadcast, and its gradients.
//
// Forward moves 3 elements of memory for each of Out, 2 where Y is a band that fits into the caches. A gradient reads what it
// is written against (dOut; for a product the other operand too; for a quotient Out and Y) and writes dX and dY in one
// pass where the shapes are the same. Where Y is a band, dX is one pass and dY another, which reads dOut and X once and
// writes next to nothing; for a sum it is the only one. All aim at the bandwidth of a device copy, but for the strided
// ones, which are as fast as their divisions. Sums are made in a fixed order, so that they are the same in every run.
#include "broadcast.cuh"
#include "reduce.cuh"

namespace f {

template <class C> constexpr bool is_whole = C(1) / C(2) == C(0);

// towards zero for whole numbers, of which none divides by 0; the smallest by -1 wraps round
template <class C> __device__ C quotient(C x, C y) {
  if constexpr (is_whole<C>) return y == 0 ? C(0) : y == C(-1) ? C(0ull - (unsigned long long)x) : C(x / y);
  else return x / y;
}

template <class C> __device__ C remainder_of(C x, C y) {
  if constexpr (is_whole<C>) {
    if (y == 0 || y == C(-1)) return 0;
    C left = x % y;
    return left != 0 && (left < 0) != (y < 0) ? left + y : left;
  } else {
    C left = fmod(x, y);
    if (y == C(0)) return left;
    if (left == C(0)) return copysign(C(0), y);
    return (left < C(0)) != (y < C(0)) ? left + y : left;
  }
}

template <class C> __device__ C rounded_down(C x, C y) {
  if constexpr (is_whole<C>) {
    C q = quotient(x, y);
    return y != 0 && y != C(-1) && x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;
  } else {
    if (y == C(0)) return x / y;
    C left = fmod(x, y), q = (x - left) / y;
    if (left != C(0) && (left < C(0)) != (y < C(0))) q -= C(1);
    if (q == C(0)) return copysign(C(0), x / y);
    C down = ::floor(q);
    return q - down > C(0.5) ? down + C(1) : down;
  }
}

template <class C> __device__ C power(C x, C y) {
  if constexpr (is_whole<C>) {
    if (y < 0) return x == 1 ? C(1) : x == C(-1) ? (y & 1 ? C(-1) : C(1)) : C(0);
    unsigned long long product = 1, base = (unsigned long long)x;
    for (; y; y >>= 1, base *= base)
      if (y & 1) product *= base;
    return C(product);
  } else {
    return ::pow(x, y);
  }
}

#define JOINED(name, out_of_x_and_y)                                                                       \
  struct name {                                                                                            \
    template <class C> static __device__ __forceinline__ C forward(C x, C y) { return out_of_x_and_y; }    \
  };
#define WITH_SLOPES(name, out_of_x_and_y, dx_of_all, dy_of_all)                                            \
  struct name {                                                                                            \
    template <class C> static __device__ __forceinline__ C forward(C x, C y) { return out_of_x_and_y; }    \
    template <class C> static __device__ __forceinline__ C dx(C x, C y, C out, C g) { return dx_of_all; }  \
    template <class C> static __device__ __forceinline__ C dy(C x, C y, C out, C g) { return dy_of_all; }  \
  };

WITH_SLOPES(add, x + y, g, g)
WITH_SLOPES(sub, x - y, g, -g)
WITH_SLOPES(mul, x * y, g * y, g * x)
WITH_SLOPES(div, quotient(x, y), g / y, -(g * out / y))
WITH_SLOPES(max, x >= y || x != x ? x : y, g * C(x > y), g * C(x <= y))
WITH_SLOPES(min, x <= y || x != x ? x : y, g * C(x < y), g * C(x >= y))
WITH_SLOPES(fmax, x >= y || y != y ? x : y, g * C(x >= y || y != y), g * C(!(x >= y || y != y)))
WITH_SLOPES(fmin, x <= y || y != y ? x : y, g * C(x <= y || y != y), g * C(!(x <= y || y != y)))
WITH_SLOPES(atan2, ::atan2(x, y), g * y / (x * x + y * y), -(g * x / (x * x + y * y)))
WITH_SLOPES(pow, power(x, y), ::pow(x, y - C(1)) * y * g, ::pow(x, y) * ::log(x) * g)
JOINED(floordiv, rounded_down(x, y))
JOINED(mod, remainder_of(x, y))

// the gradient of one operand
struct of_x {
  template <class F, class C> static __device__ __forceinline__ C at(C x, C y, C out, C g) { return F::dx(x, y, out, g); }
};
struct of_y {
  template <class F, class C> static __device__ __forceinline__ C at(C x, C y, C out, C g) { return F::dy(x, y, out, g); }
};
}  // namespace f

// ---- gradients element by element; `out` is read where a gradient needs it, and is `g` elsewhere

template <class F, class S, class T, int N>
__device__ __forceinline__ pack<T, N> slope(const pack<T, N>& x, const pack<T, N>& y, const pack<T, N>& out,
                                            const pack<T, N>& g) {
  pack<T, N> d;
#pragma unroll
  for (int k = 0; k < N; ++k)
    d.at[k] = down<T>(S::template at<F>(up<T>(x.at[k]), up<T>(y.at[k]), up<T>(out.at[k]), up<T>(g.at[k])));
  return d;
}

// X and Y of one size; dx or dy is null where it is not requested.
template <class F, class T, int N>
__global__ void slopes(const T* x, const T* y, const T* out, const T* g, T* dx, T* dy, long long n) {
  EACH(i, 0, n / N) {
    pack<T, N> p = load<T, N>(x, i), q = load<T, N>(y, i), o = load<T, N>(out, i), e = load<T, N>(g, i);
    if (dx) store<T, N>(dx, i, slope<F, f::of_x>(p, q, o, e));
    if (dy) store<T, N>(dy, i, slope<F, f::of_y>(p, q, o, e));
  }
  EACH(i, n / N * N, n) {
    auto p = up<T>(x[i]), q = up<T>(y[i]), o = up<T>(out[i]), e = up<T>(g[i]);
    if (dx) dx[i] = down<T>(F::dx(p, q, o, e));
    if (dy) dy[i] = down<T>(F::dy(p, q, o, e));
  }
}

// dX where Y is a band.
template <class F, class T, int N>
__global__ void banded_slope(const T* x, const T* y, const T* out, const T* g, T* dx, long long mid, long long inner,
                             long long n) {
  EACH(i, 0, n / N)
    store<T, N>(dx, i, slope<F, f::of_x>(load<T, N>(x, i), bands<T, N>(y, i, mid, inner), load<T, N>(out, i),
                                         load<T, N>(g, i)));
  EACH(i, n / N * N, n) dx[i] = down<T>(F::dx(up<T>(x[i]), up<T>(y[i / inner % mid]), up<T>(out[i]), up<T>(g[i])));
}

// ---- dY where Y is a band: sums over outer and inner. Several blocks share a sum where there are few: each writes its
// part to parts[blockIdx.y], and `fold` adds these up; parts is null where a block has a sum of its own.

template <class T> __device__ __forceinline__ void put(wide_t<T> sum, T* dy, wide_t<T>* parts, long long m, long long mid) {
  if (parts) parts[blockIdx.y * mid + m] = sum;
  else dy[m] = down<T>(sum);
}

// One block for an element of dY.
template <class F, class T>
__global__ void band_sums(const T* x, const T* y, const T* out, const T* g, T* dy, wide_t<T>* parts, long long outer,
                          long long mid, long long inner) {
  long long m = blockIdx.x, count = outer * inner, step = gridDim.y * (long long)blockDim.x;
  wide_t<T> v = up<T>(y[m]), sum = 0;
#pragma unroll 4
  for (long long k = blockIdx.y * (long long)blockDim.x + threadIdx.x; k < count; k += step) {
    long long o = k / inner, i = (o * mid + m) * inner + (k - o * inner);
    sum += F::dy(up<T>(x[i]), v, up<T>(out[i]), up<T>(g[i]));
  }
  sum = over_block<join::sum>(sum);
  if (threadIdx.x == 0) put(sum, dy, parts, m, mid);
}

// Blocks of 32 by 8 threads for 32 elements of dY each; inner is 1.
template <class F, class T>
__global__ void column_sums(const T* x, const T* y, const T* out, const T* g, T* dy, wide_t<T>* parts, long long outer,
                            long long mid) {
  __shared__ wide_t<T> sums[8][32];
  long long m = blockIdx.x * 32ll + threadIdx.x, step = gridDim.y * 8ll;
  wide_t<T> sum = 0;
  if (m < mid) {
    wide_t<T> v = up<T>(y[m]);
#pragma unroll 4
    for (long long o = blockIdx.y * 8ll + threadIdx.y; o < outer; o += step) {
      long long i = o * mid + m;
      sum += F::dy(up<T>(x[i]), v, up<T>(out[i]), up<T>(g[i]));
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y || m >= mid) return;
#pragma unroll
  for (int k = 1; k < 8; ++k) sum += sums[k][threadIdx.x];
  put(sum, dy, parts, m, mid);
}

template <class T> __global__ void fold(const wide_t<T>* parts, T* dy, long long count, long long n) {
  EACH(m, 0, n) {
    wide_t<T> sum = 0;
    for (long long k = 0; k < count; ++k) sum += parts[k * n + m];
    dy[m] = down<T>(sum);
  }
}

// ---- the gradient of an operand that is repeated in any way: the dimensions that it has come first, then those along
// which it is repeated, of `count` elements together. A thread makes a sum, or a block where `blocks` is not 0.

template <class F, class S, class T>
__global__ void strided_slope(const T* x, const T* y, const T* out, const T* g, T* to, SIX(d), SIX(x_), SIX(y_), SIX(g_),
                              int blocks, long long count, long long n) {
  const long long d[] = SIX_OF(d), xs[] = SIX_OF(x_), ys[] = SIX_OF(y_), gs[] = SIX_OF(g_);
  long long first = blocks ? blockIdx.x : first_of_grid(), step = blocks ? gridDim.x : grid_step();
  for (long long j = first; j < n; j += step) {
    wide_t<T> sum = 0;
    for (long long k = blocks ? threadIdx.x : 0; k < count; k += blocks ? blockDim.x : 1) {
      spot s = locate(j * count + k, d, xs, ys, gs);
      sum += S::template at<F>(up<T>(x[s.x]), up<T>(y[s.y]), up<T>(out[s.out]), up<T>(g[s.out]));
    }
    if (blocks) sum = over_block<join::sum>(sum);
    if (!blocks || threadIdx.x == 0) to[j] = down<T>(sum);
  }
}
