// random_crop: a part of each instance, from a place that C++'s std::minstd_rand chooses.
//
// Parts move each element once in and once out and aim at the bandwidth of a device copy. The generator advances by any
// number of steps at once, as a power of its factor, so that each instance finds its own place. W is a word that holds
// an element.
#include "row_grid.cuh"

typedef unsigned long long state;
const state FACTOR = 48271, MODULUS = 2147483647;

// What a seed starts from: that of the last run, or `startup` before the first one.
__device__ __forceinline__ state seeded(const long long* seed, const bool* begun, long long startup) {
  state s = state(seed && (!begun || *begun) ? *seed : startup) % MODULUS;
  return s ? s : 1;
}

__device__ __forceinline__ state later(state s, long long steps) {
  for (state factor = FACTOR; steps; steps >>= 1, factor = factor * factor % MODULUS)
    if (steps & 1) s = s * factor % MODULUS;
  return s;
}

// The start of each instance's part in x; room[d] is the last start in dimension d, steps[d] the stride.
extern "C" __global__ void begins(const long long* seed, const bool* begun, long long startup, const long long* room,
                                  const long long* steps, long long* begin, long long rank, long long size,
                                  long long count) {
  state start = seeded(seed, begun, startup);
  EACH(i, 0, count) {
    state s = later(start, i * rank);
    long long at = i * size;
    for (long long d = 0; d < rank; ++d) {
      state places = room[d] + 1, share = (MODULUS - 2) / places;
      do s = s * FACTOR % MODULUS;  // the rest of the division would favour the first places
      while (s - 1 >= share * places);
      at += (s - 1) / share * steps[d];
    }
    begin[i] = at;
  }
}

// A row is contiguous elements of a part; `tall` rows make a part, and `sizes` are its other dimensions.
template <class W>
__global__ void parts(const void* from, void* to, const long long* begin, const long long* sizes, const long long* steps,
                      long long dims, long long tall, long long width, long long rows) {
  const W* x = static_cast<const W*>(from);
  W* out = static_cast<W*>(to);
  EACH_ROW(r, rows) {
    long long at = begin[r / tall], left = r % tall;
    for (long long d = dims - 1; d >= 0; --d) {
      at += left % sizes[d] * steps[d];
      left /= sizes[d];
    }
    ALONG(j, width) out[r * width + j] = x[at + j];
  }
}

// The seed of the next run; one thread.
extern "C" __global__ void next_seed(const long long* seed, bool* begun, long long startup, long long* after,
                                     long long steps) {
  *after = later(seeded(seed, begun, startup), steps);
  if (begun) *begun = true;
}
