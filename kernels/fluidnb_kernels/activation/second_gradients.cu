// Gradients of the gradients of activations: what the slope's own argument v gets, bend(v) * given * ddx.
//
// The other half, what dOut gets, is the gradient's own kernel with ddx in the place of dOut. Reads 3 elements and
// writes 1 for each of v, with little arithmetic: the bound is the bandwidth of a device copy. `bend` is the
// change of the slope with v, divided by the slope where `given` is dX; `a` is a number of the activation. Loads are 16 bytes wide where `wide` says that
// all addresses allow it. No pointer is __restrict__: an output may be its input's memory.
#include "fluid.cuh"

template <class F, class T>
__global__ void again(const T* v, const T* given, const T* ddx, T* out, double a, int wide, long long n) {
  constexpr int N = 16 / sizeof(T);
  long long packs = wide ? n / N : 0;
  EACH(i, 0, packs) {
    pack<T, N> p = load<T, N>(v, i), q = load<T, N>(given, i), r = load<T, N>(ddx, i);
#pragma unroll
    for (int k = 0; k < N; ++k) r.at[k] = down<T>(F::bend(up<T>(p.at[k]), a) * up<T>(q.at[k]) * up<T>(r.at[k]));
    store<T, N>(out, i, r);
  }
  EACH(i, packs * N, n) out[i] = down<T>(F::bend(up<T>(v[i]), a) * up<T>(given[i]) * up<T>(ddx[i]));
}

namespace f {
#define BEND(name, of_v)                                                                      \
  struct name {                                                                               \
    template <class C> static __device__ __forceinline__ C bend(C v, double a) { return of_v; }         \
  };
BEND(sigmoid, C(1) - v * C(2))
BEND(tanh, v * C(-2))
BEND(exp, C(1))
BEND(log, -(C(1) / (v * v)))
BEND(sqrt, C(1) / v * C(-1))
BEND(rsqrt, C(1) / v * C(3))
BEND(square, C(2))
BEND(reciprocal, v * C(-2))
BEND(sin, -::sin(v))
BEND(cos, -::cos(v))
BEND(elu, v > C(0) ? C(0) : C(a) * ::exp(v))
}  // namespace f
