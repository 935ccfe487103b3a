// allclose and equal_all: whether two tensors are the same as a whole.
//
// Both read each element once and aim at the bandwidth of reading. Each block leaves whether its elements are the same,
// and a second, short launch joins the blocks.
#include "reduce.cuh"

__device__ __forceinline__ void leave(bool same, bool* partial) {
  int all = over_block<join::every>(int(same));
  if (threadIdx.x == 0) partial[blockIdx.x] = all;
}

// What is compared: whole numbers as numpy takes them here.
template <class C> struct number { typedef C type; };
template <> struct number<int> { typedef double type; };
template <> struct number<long long> { typedef double type; };

// L is the precision of the tolerances, which are in memory where the pointers are not null.
template <class T, class L>
__global__ void close(const T* x, const T* y, const L* rtol_at, const L* atol_at, bool* partial, double rtol, double atol,
                      int nans, long long n) {
  typedef typename number<wide_t<T>>::type C;
  const L relative = rtol_at ? *rtol_at : L(rtol), absolute = atol_at ? *atol_at : L(atol);
  bool same = true;
  EACH(i, 0, n) {
    C p = C(up<T>(x[i])), q = C(up<T>(y[i])), gap = p - q, size = q < C(0) ? -q : q;
    gap = gap < C(0) ? -gap : gap;
    bool finite = q - q == C(0), within = L(gap) <= absolute + relative * L(size);
    same &= within && finite || p == q || nans && p != p && q != q;
  }
  leave(same, partial);
}

template <class T> __global__ void same(const T* x, const T* y, bool* partial, long long n) {
  bool same = true;
  EACH(i, 0, n) same &= up<T>(x[i]) == up<T>(y[i]);
  leave(same, partial);
}

// One block.
extern "C" __global__ void everywhere(const bool* partial, bool* out, int blocks) {
  int all = 1;
  for (int i = threadIdx.x; i < blocks; i += blockDim.x) all &= partial[i];
  all = over_block<join::every>(all);
  if (threadIdx.x == 0) *out = all;
}
