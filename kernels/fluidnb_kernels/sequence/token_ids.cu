// Whole numbers in sequences: masks of lengths, windows of words, words that stay, and numbers that name columns.
//
// Each reads and writes its elements once and computes next to nothing: bound by the bandwidth of a device copy. What
// stays of a sequence is found by one warp, 32 words at a time; where a warp adds updates to a row, each of its threads
// has columns of its own, so that sums have the order of the updates and need no atomics. W is a word of 1 to 8 bytes.
#include "row_grid.cuh"

// 1 in the first columns of a row, as many as its length says
template <class W, class I>
__global__ void mask(const I* lengths, void* to, unsigned long long one, long long width, long long rows) {
  W* out = static_cast<W*>(to);
  EACH_ROW(r, rows) {
    const long long n = lengths[r];
    ALONG(j, width) out[r * width + j] = j < n ? W(one) : W(0);
  }
}

// out[r, j] = x[r + j] before the end of the sequence of r
template <class W>
__global__ void windows(const void* from, const long long* ends, void* to, unsigned long long pad, long long width,
                        long long rows) {
  const W* x = static_cast<const W*>(from);
  W* out = static_cast<W*>(to);
  EACH_ROW(r, rows) {
    const long long end = ends[r];
    ALONG(j, width) out[r * width + j] = r + j < end ? x[r + j] : W(pad);
  }
}

// ---- words that stay: a warp takes a sequence

#define EACH_SEQUENCE(i, count) \
  for (long long i = blockIdx.x * (long long)blockDim.y + threadIdx.y; i < (count); i += gridDim.x * (long long)blockDim.y)

// Writes those of n words that stay one after another; gives how many there are. All threads of a warp come here.
template <class I, class F> __device__ __forceinline__ long long keep(const I* x, long long n, I* out, const F& stays) {
  const int lane = threadIdx.x;
  long long total = 0;
  for (long long k = 0; k < n; k += 32) {
    const bool here = k + lane < n && stays(x, k + lane);
    const unsigned those = __ballot_sync(0xffffffffu, here);
    if (here && out) out[total + __popc(those & ((1u << lane) - 1))] = x[k + lane];
    total += __popc(those);
  }
  return total;
}

template <class I> struct not_among {
  const long long* tokens;
  int count;
  __device__ __forceinline__ bool operator()(const I* x, long long k) const {
    for (int t = 0; t < count; ++t)
      if (tokens[t] == (long long)x[k]) return false;
    return true;
  }
};
template <class I> struct label {
  long long blank;
  int merge;
  __device__ __forceinline__ bool operator()(const I* x, long long k) const {
    return (long long)x[k] != blank && !(merge && k && x[k] == x[k - 1]);
  }
};

// The words of sequence i go from to[i] on.
template <class I>
__global__ void erased(const I* x, const long long* starts, const long long* to, const long long* tokens, int count,
                       I* out, long long sequences) {
  const not_among<I> stays = {tokens, count};
  EACH_SEQUENCE(i, sequences) keep(x + starts[i], starts[i + 1] - starts[i], out + to[i], stays);
}
template <class I>
__global__ void aligned(const I* x, const long long* starts, const long long* to, long long blank, int merge, I* out,
                        long long sequences) {
  const label<I> stays = {blank, merge};
  EACH_SEQUENCE(i, sequences) keep(x + starts[i], starts[i + 1] - starts[i], out + to[i], stays);
}
// In a rectangle, with their number and what follows them; both may not be wanted.
template <class I>
__global__ void aligned_steps(const I* x, const long long* lengths, long long blank, int merge, long long fill, I* out,
                              long long* counts, long long steps, long long sequences) {
  const label<I> stays = {blank, merge};
  EACH_SEQUENCE(i, sequences) {
    const long long n = lengths[i] < steps ? lengths[i] : steps;
    I* row = out ? out + i * steps : out;
    const long long found = keep(x + i * steps, n, row, stays);
    if (row)
      for (long long k = found + threadIdx.x; k < steps; k += 32) row[k] = I(fill);
    if (counts && threadIdx.x == 0) counts[i] = found;
  }
}

// ---- numbers that name columns of a row; one outside stops the kernel

__device__ __forceinline__ long long column(const long long* ids, long long k, long long width) {
  const long long id = ids[k];
  if (id < 0 || id >= width) __trap();
  return id;
}

// total[i, ids[k]] += updates[k] for each k of sequence i
template <class T>
__global__ void scattered(const T* updates, const long long* ids, const long long* starts, wide_t<T>* total,
                          long long width, long long sequences) {
  EACH_SEQUENCE(i, sequences) {
    for (long long k = starts[i]; k < starts[i + 1]; ++k) {
      const long long at = column(ids, k, width);
      if (at % 32 == threadIdx.x) total[i * width + at] += up<T>(updates[k]);
    }
  }
}

// out[k] = x[owner of k, ids[k]]
template <class W>
__global__ void picked(const void* from, const long long* ids, const long long* owners, void* to, long long width,
                       long long count) {
  EACH(k, 0, count)
    static_cast<W*>(to)[k] = static_cast<const W*>(from)[owners[k] * width + column(ids, k, width)];
}
