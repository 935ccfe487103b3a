// What kernels of several steps have beside those of one.
#pragma once
#include "fluid.cuh"

// A value as memory would give it: a product of one step is not contracted with the sum of the next.
template <class T> __device__ __forceinline__ T settled(T x) { return x; }
#ifndef FLUIDNB_EMULATOR
template <> __device__ __forceinline__ float settled<float>(float x) {
  asm("" : "+f"(x));
  return x;
}
template <> __device__ __forceinline__ double settled<double>(double x) {
  asm("" : "+d"(x));
  return x;
}
#endif
