// Threads arranged in rows and along them, so that what a row needs is computed once and no element costs a division.
#pragma once
#include "fluid.cuh"

#define EACH_ROW(r, rows)                                                          \
  for (long long r = blockIdx.x * (long long)blockDim.y + threadIdx.y; r < (rows); \
       r += gridDim.x * (long long)blockDim.y)
#define ALONG(j, width)                                                               \
  for (long long j = blockIdx.y * (long long)blockDim.x + threadIdx.x; j < (width); \
       j += gridDim.y * (long long)blockDim.x)
