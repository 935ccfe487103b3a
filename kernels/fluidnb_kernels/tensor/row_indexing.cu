// Rows of a tensor chosen by their numbers: gather, scatter, lookup_table, multiplex, one_hot, where, and back.
//
// A tensor is [outer, height, inner]; an index names rows of the second dimension. Threads of a block are arranged in rows
// (y) and along them (x), so that an index is read once for a row and no element costs a division. Taking and putting
// move each element of the result once in and once out, and aim at the bandwidth of a device copy; W is a word of 1 to
// 16 bytes. Where several rows meet in one, they are added in an order that the index fixes, so that a step of training
// has the same bits every time; in long indexes with atomics, in an order that may change from run to run. A number that
// names no row stops the kernel: there is nothing to give for it.
#include "row_grid.cuh"

// The row that a number names; negative ones count from the end where `back` says so.
__device__ __forceinline__ long long named(long long id, long long height, int back) {
  if (back && id < 0) id += height;
  if (id < 0 || id >= height) __trap();
  return id;
}

__device__ __forceinline__ void add(float* total, float x) { atomicAdd(total, x); }
__device__ __forceinline__ void add(double* total, double x) { atomicAdd(total, x); }
__device__ __forceinline__ void add(int* total, int x) { atomicAdd(total, x); }
__device__ __forceinline__ void add(long long* total, long long x) {
  atomicAdd(reinterpret_cast<unsigned long long*>(total), (unsigned long long)x);
}

// out[o, k] = x[o, index[k]], zeros for the number `padding`
template <class W, class I>
__global__ void taken(const void* from, const I* index, void* to, long long n, long long height, long long width,
                      int back, long long padding, long long rows) {
  const W* x = static_cast<const W*>(from);
  W* out = static_cast<W*>(to);
  EACH_ROW(r, rows) {
    long long id = index[r % n];
    if (id == padding) {
      ALONG(j, width) out[r * width + j] = W{};
      continue;
    }
    const W* row = x + (r / n * height + named(id, height, back)) * width;
    ALONG(j, width) out[r * width + j] = row[j];
  }
}

// total[o, index[k]] += x[o, k], but not for the number `padding`
template <class T, class I>
__global__ void added(const T* x, const I* index, wide_t<T>* total, long long n, long long height, long long width,
                      int back, long long padding, long long rows) {
  EACH_ROW(r, rows) {
    long long id = index[r % n];
    if (id == padding) continue;
    wide_t<T>* row = total + (r / n * height + named(id, height, back)) * width;
    ALONG(j, width) add(row + j, up<T>(x[r * width + j]));
  }
}

// The same in an order that depends on the index alone. A block has row o of the first number that names a place and
// finds the others, each warp in its share of the index: n comparisons for each number, so this is for short indexes.
template <class T, class I>
__global__ void added_in_order(const T* x, const I* index, wide_t<T>* total, long long n, long long height,
                               long long width, int back, long long padding) {
  __shared__ wide_t<T> sums[8][32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  long long k = blockIdx.x % n, outer = blockIdx.x / n, id = index[k];
  if (id == padding) return;
  long long place = named(id, height, back);
  bool earlier = false;
  for (long long at = threadIdx.x; at < k && !earlier; at += blockDim.x)
    earlier = index[at] != padding && named(index[at], height, back) == place;
  if (__syncthreads_or(earlier)) return;
  for (long long left = blockIdx.y * 32LL; left < width; left += gridDim.y * 32LL) {
    long long j = left + lane;
    wide_t<T> sum = 0;
    for (long long start = k + warp * 32; start < n; start += blockDim.x) {
      long long at = start + lane;
      bool hit = at < n && index[at] != padding && named(index[at], height, back) == place;
      for (unsigned rest = __ballot_sync(0xffffffffu, hit); rest; rest &= rest - 1)
        if (j < width) sum += up<T>(x[(outer * n + start + __ffs(rest) - 1) * width + j]);
    }
    sums[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && j < width) {
      sum = total[(outer * height + place) * width + j];
      for (int w = 0; w < warps; ++w) sum += sums[w][lane];
      total[(outer * height + place) * width + j] = sum;
    }
    __syncthreads();
  }
}

// Of several rows for one place the last one stays: first each place learns which one that is.
template <class I>
__global__ void claimed(const I* index, long long* last, long long height, long long count) {
  EACH(k, 0, count) atomicMax(last + named(index[k], height, 0), k);
}
template <class W, class I>
__global__ void put(const void* from, const I* index, const long long* last, void* to, long long width, long long rows) {
  EACH_ROW(k, rows) {
    long long id = index[k];
    if (last[id] != k) continue;
    ALONG(j, width) static_cast<W*>(to)[id * width + j] = static_cast<const W*>(from)[k * width + j];
  }
}

// out[index[k]] = 0
template <class W, class I>
__global__ void blanked(const I* index, void* to, long long height, long long width, long long rows) {
  EACH_ROW(k, rows) {
    W* row = static_cast<W*>(to) + named(index[k], height, 0) * width;
    ALONG(j, width) row[j] = W{};
  }
}

// One more of the numbers that name a part, whose number in [size of each dimension] this works out.
template <class I>
__global__ void numbered(const I* index, long long* rows, long long depth, long long at, long long size, long long count) {
  EACH(k, 0, count) rows[k] = (at ? rows[k] * size : 0) + named(index[k * depth + at], size, 0);
}

// out[k] = x[k] in the rows whose number is `which`; the others stay, or become zeros
template <class W, class I>
__global__ void chosen(const void* from, const I* index, void* to, long long n, long long which, long long candidates,
                       int others, long long width, long long rows) {
  EACH_ROW(k, rows) {
    bool here = k < n && named(index[k], candidates, 0) == which;
    if (!here && !others) continue;
    ALONG(j, width) static_cast<W*>(to)[k * width + j] = here ? static_cast<const W*>(from)[k * width + j] : W{};
  }
}

// Rows with a single 1; a number outside stops the kernel, or gives a row of 0 where `lenient` says so.
template <class W, class I>
__global__ void hot(const I* index, void* to, unsigned long long one, long long width, int lenient, long long rows) {
  EACH_ROW(k, rows) {
    long long id = lenient ? (long long)index[k] : named(index[k], width, 0);
    ALONG(j, width) static_cast<W*>(to)[k * width + j] = j == id ? W(one) : W(0);
  }
}

// ---- elements along a dimension of x [outer, height, inner] by an index [outer, n, inner]

template <class I>
__device__ __forceinline__ long long along(const I* index, long long i, long long n, long long height, long long inner) {
  return (i / inner / n * height + named(index[i], height, 0)) * inner + i % inner;
}
template <class W, class I>
__global__ void along_taken(const void* x, const I* index, void* out, long long n, long long height, long long inner,
                            long long count) {
  EACH(i, 0, count) static_cast<W*>(out)[i] = static_cast<const W*>(x)[along(index, i, n, height, inner)];
}
template <class W, class I>
__global__ void along_put(const void* x, const I* index, void* out, long long n, long long height, long long inner,
                          long long count) {
  EACH(i, 0, count) static_cast<W*>(out)[along(index, i, n, height, inner)] = static_cast<const W*>(x)[i];
}
template <class T, class I>
__global__ void along_added(const T* x, const I* index, wide_t<T>* total, long long n, long long height,
                            long long inner, long long count) {
  EACH(i, 0, count) add(total + along(index, i, n, height, inner), up<T>(x[i]));
}

// ---- element by element

template <class W>
__global__ void either(const bool* condition, const void* x, const void* y, void* out, long long count) {
  EACH(i, 0, count)
    static_cast<W*>(out)[i] = static_cast<const W*>(condition[i] ? x : y)[i];
}
// Zeros where the condition is not `value`.
template <class W>
__global__ void only(const bool* condition, const void* x, void* out, int value, long long count) {
  EACH(i, 0, count) static_cast<W*>(out)[i] = condition[i] == bool(value) ? static_cast<const W*>(x)[i] : W(0);
}

// ---- where a condition holds, in order: how many hits each block has, how many come before it, and their places

const int CHUNK = 1024;  // elements of a block

template <class C>
__global__ void hits(const C* condition, long long* counts, long long n) {
  long long start = blockIdx.x * (long long)CHUNK, total = 0;
  for (int k = threadIdx.x; k < CHUNK; k += blockDim.x)
    total += __syncthreads_count(start + k < n && condition[start + k] != C(0));
  if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

// One block turns counts into how many come before each.
const int SCANNERS = 256;
extern "C" __global__ void before(long long* counts, long long blocks) {
  __shared__ long long sums[SCANNERS];
  long long share = (blocks + SCANNERS - 1) / SCANNERS, from = threadIdx.x * share, total = 0;
  long long to = from + share < blocks ? from + share : blocks;
  for (long long k = from; k < to; ++k) total += counts[k];
  sums[threadIdx.x] = total;
  __syncthreads();
  total = 0;
  for (int k = 0; k < int(threadIdx.x); ++k) total += sums[k];
  for (long long k = from; k < to; ++k) {
    long long here = counts[k];
    counts[k] = total;
    total += here;
  }
}

template <class C>
__global__ void found(const C* condition, const long long* counts, long long* places, long long n) {
  __shared__ int warps[32];
  long long start = blockIdx.x * (long long)CHUNK, next = counts[blockIdx.x];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  for (int k = threadIdx.x; k < CHUNK; k += blockDim.x) {
    bool hit = start + k < n && condition[start + k] != C(0);
    unsigned mask = __ballot_sync(0xffffffffu, hit);
    if (lane == 0) warps[warp] = __popc(mask);
    __syncthreads();
    int earlier = __popc(mask & ((1u << lane) - 1)), all = 0;
    for (int w = 0; w < int(blockDim.x >> 5); ++w) {
      earlier += w < warp ? warps[w] : 0;
      all += warps[w];
    }
    if (hit) places[next + earlier] = start + k;
    next += all;
    __syncthreads();
  }
}

// One column of [hits, rank]: the coordinate along a dimension in which `inner` elements follow each other.
extern "C" __global__ void coordinates(const long long* places, long long* out, long long rank, long long at,
                                       long long size, long long inner, long long count) {
  EACH(k, 0, count) out[k * rank + at] = places[k] / inner % size;
}
