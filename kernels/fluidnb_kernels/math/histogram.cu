// histogram: how many elements fall into each of several ranges.
//
// Each element is read once and little is written: the bound is the bandwidth of reading. A block counts in shared
// memory where the ranges fit there, and adds its counts to the result; whole numbers mind no order.
#include "fluid.cuh"

// Numbers as numpy computes with them here: floats in their own precision, whole numbers exactly until they are divided.
template <class C> struct number { typedef C type; };
template <> struct number<int> { typedef long long type; };

template <class C> __device__ __forceinline__ long long place(C x, C width, long long bins) {
  return static_cast<long long>(x * C(bins) / width);
}
__device__ __forceinline__ long long place(long long x, long long width, long long bins) {
  return static_cast<long long>(double(x * bins) / double(width));
}

// `least` and `most` hold the ends where the operator does not give them; `beside` says whether counts fit in a block.
template <class T>
__global__ void histogram(const T* x, const T* least, const T* most, long long* result, long long from, long long to,
                          long long bins, int beside, long long n) {
  extern __shared__ unsigned counts[];
  typedef typename number<wide_t<T>>::type C;
  unsigned long long* out = reinterpret_cast<unsigned long long*>(result);
  C low = least ? C(up<T>(*least)) : C(from), high = most ? C(up<T>(*most)) : C(to);
  if (low == high) {
    low -= C(1);
    high += C(1);
  }
  if (beside) {
    for (int k = threadIdx.x; k < bins; k += blockDim.x) counts[k] = 0;
    __syncthreads();
  }
  EACH(i, 0, n) {
    C v = C(up<T>(x[i]));
    if (!(v >= low && v <= high)) continue;
    long long at = place(C(v - low), C(high - low), bins);
    if (at < 0) continue;  // between infinite ends there are no ranges
    if (at >= bins) at = bins - 1;
    if (beside) atomicAdd(counts + at, 1u);
    else atomicAdd(out + at, 1ull);
  }
  if (beside) {
    __syncthreads();
    for (int k = threadIdx.x; k < bins; k += blockDim.x)
      if (counts[k]) atomicAdd(out + k, static_cast<unsigned long long>(counts[k]));
  }
}
