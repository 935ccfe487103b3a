// Arithmetic that gives the host's very digits where a step follows it, and quotients that are no dearer than they must be.
#pragma once
#include "fluid.cuh"

// A product that is rounded by itself: never joined with the sum behind it.
#ifdef FLUIDNB_EMULATOR
__device__ __forceinline__ float times(float a, float b) { return a * b; }
__device__ __forceinline__ double times(double a, double b) { return a * b; }
#else
__device__ __forceinline__ float times(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
#endif

// i / n of numbers that are not negative; 64 bits are divided only where 32 do not hold them.
__device__ __forceinline__ long long quotient(long long i, long long n) {
  if (n == 1) return i;
  return (i | n) >> 32 ? i / n : (long long)(unsigned(i) / unsigned(n));
}
