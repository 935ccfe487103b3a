// spectral_norm: a weight over its largest singular value, and the gradient; the products of the power iteration are gemm's.
//
// The weight is read once for each half step of the iteration and once to be divided; the gradient reads it and dOut
// and writes once. The vectors are short: one block makes each of them as long as 1.
#include "reduce.cuh"

// y = x over its length.
template <class T> __global__ void unit(const T* x, T* y, double epsilon, long long n) {
  T total = 0;
  for (long long i = threadIdx.x; i < n; i += blockDim.x) total += x[i] * x[i];
  total = sqrt(over_block<join::sum>(total)) + T(epsilon);
  for (long long i = threadIdx.x; i < n; i += blockDim.x) y[i] = x[i] / total;
}

template <class T> __global__ void divided(const T* x, const T* by, T* y, long long n) {
  EACH(i, 0, n) y[i] = x[i] / *by;
}

// The rows of the matrix are the dimension of size `height`, below which `inner` elements lie.
template <class T>
__global__ void spectral_slope(const T* g, const T* u, const T* v, const T* value, const T* along, T* dw,
                               long long height, long long inner, long long n) {
  const T share = *along / *value;
  EACH(i, 0, n) {
    long long line = i / inner, column = line / height * inner + i - line * inner;
    dw[i] = (g[i] - share * (u[line % height] * v[column])) / *value;
  }
}
