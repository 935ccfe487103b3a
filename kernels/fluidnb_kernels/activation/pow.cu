// pow and its gradient, element by element.
//
// Forward moves 2 elements for each of x, backward 3. A power is some tens of operations, so single precision is bound
// by memory and arithmetic alike. The power comes as a number, or as the one element of `given`. No pointer is
// __restrict__: an output may be its input's memory.
#include "fluid.cuh"

__device__ __forceinline__ float power(float x, float p) { return p == 2.f ? x * x : powf(x, p); }
__device__ __forceinline__ double power(double x, double p) { return p == 2. ? x * x : ::pow(x, p); }
// Whole numbers go around as they do on the host; it knows no negative powers of them.
template <class T> __device__ __forceinline__ T whole_power(T x, T p) {
  if (p < 0) __trap();
  unsigned long long total = 1, factor = (unsigned long long)x;
  for (; p; p >>= 1, factor *= factor)
    if (p & 1) total *= factor;
  return T(total);
}
__device__ __forceinline__ int power(int x, int p) { return whole_power(x, p); }
__device__ __forceinline__ long long power(long long x, long long p) { return whole_power(x, p); }

template <class T>
__global__ void powers(const T* x, T* out, const T* given, double factor, long long n) {
  wide_t<T> p = given ? up<T>(*given) : wide_t<T>(factor);
  EACH(i, 0, n) out[i] = down<T>(power(up<T>(x[i]), p));
}

template <class T>
__global__ void powers_grad(const T* x, const T* g, T* dx, const T* given, double factor, long long n) {
  wide_t<T> p = given ? up<T>(*given) : wide_t<T>(factor), less = p - wide_t<T>(1);
  EACH(i, 0, n) dx[i] = down<T>(power(up<T>(x[i]), less) * p * up<T>(g[i]));
}
