// Windows that slide along the three axes of an image; an image of two axes has a depth of 1.
#pragma once
#include "fluid.cuh"

// As `Axis` of sliding.py. A stride of 0 says that the windows share out the axis, see `adaptive_bins`.
struct axis { int size, window, stride, dilation, low, out; };

#define AXIS(a) int a##_size, int a##_window, int a##_stride, int a##_dilation, int a##_low, int a##_out
#define ONE_AXIS(a) const axis a = {a##_size, a##_window, a##_stride, a##_dilation, a##_low, a##_out};
#define WINDOWS AXIS(d), AXIS(h), AXIS(w)
#define ALL_AXES ONE_AXIS(d) ONE_AXIS(h) ONE_AXIS(w)

// The number of an element without its last dimension, of n elements; gives the place in that one. Numbers that fit
// into 32 bits are divided in these, which is several times as quick.
__device__ __forceinline__ long long last_of(long long& i, long long n) {
  if (((i | n) >> 32) == 0) {
    unsigned q = unsigned(i) / unsigned(n), rest = unsigned(i) - q * unsigned(n);
    i = q;
    return rest;
  }
  long long q = i / n, rest = i - q * n;
  i = q;
  return rest;
}

// The window whose element `tap` is element p of the image, or -1.
__device__ __forceinline__ int window_at(axis a, int p, int tap) {
  int from = p + a.low - tap * a.dilation, window = from / a.stride;
  return from >= 0 && window < a.out && window * a.stride == from ? window : -1;
}

__device__ __forceinline__ bool inside(axis a, int p) { return p >= 0 && p < a.size; }
