// affine_channel, temporal_shift, unpool: images [rows, width] scaled, shifted in time, put back.
//
// Each reads an element once and writes one, with threads in rows (y) and along them (x), and aims at the bandwidth of a
// device copy; unpool also writes and reads a number for each element of its result, so that of several elements for
// one place the last one stays, whatever order threads run in. W is a word of 1 to 16 bytes.
#include "row_grid.cuh"

// out = x · scale + bias, the channel being the place along a row (LAST), or the row's; no bias where there is none
template <class T>
__global__ void affine(const T* x, const wide_t<T>* scale, const wide_t<T>* bias, T* out, long long channels,
                       long long width, int last, int biased, long long rows) {
  EACH_ROW(r, rows) {
    ALONG(j, width) {
      const long long c = last ? j : r % channels;
      const wide_t<T> y = up<T>(x[r * width + j]) * scale[c];
      out[r * width + j] = down<T>(biased ? y + bias[c] : y);
    }
  }
}

// An image has `image` rows and a video `steps` images. Channels before `one` move by `step` images, those before `two`
// the other way; the channel is the place along a row, or the row's.
template <class W>
__global__ void shifted(const void* from, void* to, long long image, long long steps, long long one, long long two,
                        long long width, int step, int last, long long rows) {
  const W* x = static_cast<const W*>(from);
  W* out = static_cast<W*>(to);
  EACH_ROW(r, rows) {
    const long long t = r / image % steps;
    ALONG(j, width) {
      const long long c = last ? j : r % image, by = c < one ? step : c < two ? -step : 0;
      out[r * width + j] = t >= by && t - by < steps ? x[(r - by * image) * width + j] : W{};
    }
  }
}

// last[plane, index[k]] = k, the largest k of several; an index outside the plane stops the kernel
template <class I>
__global__ void claimed_place(const I* index, long long* last, long long n, long long size, long long count) {
  EACH(k, 0, count) {
    const long long place = index[k];
    if (place < 0 || place >= size) __trap();
    atomicMax(last + k / n * size + place, k);
  }
}
template <class W>
__global__ void put_back(const void* from, const long long* last, void* to, long long count) {
  EACH(i, 0, count) static_cast<W*>(to)[i] = last[i] < 0 ? W(0) : static_cast<const W*>(from)[last[i]];
}
