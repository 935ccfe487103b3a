// Numbers in another type, element by element. Moves one element in and one out; aims at the bandwidth of a device copy.
#include "fluid.cuh"

template <class T, class U> __global__ void cast(const T* x, U* y, long long n) {
  EACH(i, 0, n) y[i] = down<U>(static_cast<wide_t<U>>(up<T>(x[i])));
}
