// Windows whose elements are taken from where offsets lead, as columns for a product, and the gradients of columns.
//
// A thread takes one element of one window and one group of channels: the four pixels around its place are computed
// once, and read for each channel of the group. Columns are written once; pixels come from caches where offsets are
// small, and the bound is then the bandwidth of writing. The gradients of offsets and masks add up the channels in
// order. That of images adds with atomics, in an order that may change from run to run: 4 reads and writes for a column.
#include "sliding_windows.cuh"

const int NEAR = 4;

// The pixels around a place: where they are in a plane (-1 outside), their shares, and how these move with the place.
template <class C> struct pixels {
  int at[NEAR];
  C share[NEAR], down[NEAR], right[NEAR];

  __device__ __forceinline__ pixels(const C* offset, long long place, int tap, axis h, axis w) {
    const int row = place / w.out, column = place - (long long)row * w.out;
    const long long places = (long long)h.out * w.out;
    const C y = C(row * h.stride - h.low + tap / w.window * h.dilation) + offset[0];
    const C x = C(column * w.stride - w.low + tap % w.window * w.dilation) + offset[places];
    const bool seen = y > -1 && x > -1 && y < h.size && x < w.size;
    const C top = seen ? floor(y) : C(0), left = seen ? floor(x) : C(0);
    const C below = seen ? y - top : C(0), beside = seen ? x - left : C(0);
#pragma unroll
    for (int k = 0; k < NEAR; ++k) {
      const int yy = int(top) + k / 2, xx = int(left) + k % 2;
      const C tall = k / 2 ? below : 1 - below, wide = k % 2 ? beside : 1 - beside;
      at[k] = seen && inside(h, yy) && inside(w, xx) ? yy * w.size + xx : -1;
      share[k] = tall * wide;
      down[k] = k / 2 ? wide : -wide;
      right[k] = k % 2 ? tall : -tall;
    }
  }
};

// Element i of the masks: an image, a group of channels, an element of the window, a place.
#define ELEMENT_OF(i)                                                                                \
  long long n = i;                                                                                   \
  const long long places = (long long)h.out * w.out, plane = (long long)h.size * w.size;             \
  const long long place = last_of(n, places);                                                        \
  const int window = h.window * w.window, tap = last_of(n, window);                                  \
  const pixels<C> near(offset + 2 * (i - place) + place, place, tap, h, w);                          \
  const C factor = mask ? mask[i] : C(1);                                                            \
  const long long first = n * channels, part = last_of(n, parts);

template <class C>
__global__ void deformed_columns(const C* x, const C* offset, const C* mask, C* to, WINDOWS, long long channels,
                                 long long parts, long long image_step, long long row_step, long long count) {
  ONE_AXIS(h) ONE_AXIS(w)
  EACH(i, 0, count) {
    ELEMENT_OF(i)
    C* column = to + n * image_step + (part * channels * window + tap) * row_step + place;
    for (long long c = 0; c < channels; ++c, column += window * row_step) {
      const C* image = x + (first + c) * plane;
      C total = 0;
#pragma unroll
      for (int k = 0; k < NEAR; ++k)
        if (near.at[k] >= 0) total += image[near.at[k]] * near.share[k];
      *column = total * factor;
    }
  }
}

// Gradients that are not wanted are 0.
template <class C>
__global__ void deformed_gradients(const C* x, const C* offset, const C* mask, const C* columns, C* dx, C* d_offset,
                                   C* d_mask, WINDOWS, long long channels, long long parts, long long count) {
  ONE_AXIS(h) ONE_AXIS(w)
  EACH(i, 0, count) {
    ELEMENT_OF(i)
    const C* column = columns + ((n * parts + part) * channels * window + tap) * places + place;
    C down = 0, right = 0, seen = 0;
    for (long long c = 0; c < channels; ++c, column += window * places) {
      const C slope = *column;
      const long long image = (first + c) * plane;
#pragma unroll
      for (int k = 0; k < NEAR; ++k)
        if (near.at[k] >= 0) {
          const C felt = x[image + near.at[k]] * slope;
          seen += felt * near.share[k];
          down += felt * near.down[k];
          right += felt * near.right[k];
          if (dx) atomicAdd(dx + image + near.at[k], slope * factor * near.share[k]);
        }
    }
    if (d_mask) d_mask[i] = seen;
    if (d_offset) {
      C* slopes = d_offset + 2 * (i - place) + place;
      slopes[0] = down * factor;
      slopes[places] = right * factor;
    }
  }
}
