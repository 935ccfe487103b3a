// Sums and products that are rounded one by one, never contracted into one operation: for numbers that must be the
// host's to the last bit.
#pragma once
#include "fluid.cuh"

__device__ __forceinline__ float sum_of(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ double sum_of(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ long long sum_of(long long a, long long b) { return a + b; }
__device__ __forceinline__ float product_of(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double product_of(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ long long product_of(long long a, long long b) { return a * b; }
