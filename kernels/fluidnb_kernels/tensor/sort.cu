// Sorting along lines: argsort, in both directions. Equal elements keep their order, and NaN comes
// behind all others, before them where the largest come first, as on the host.
//
// A line of up to TILE elements is sorted by a block in shared memory (Batcher's bitonic network), several short lines
// in one block: an element is read once, and it and its number are written once, so the bound is the bandwidth of
// device memory. Of a longer line the tiles are sorted so, and then neighbouring runs are merged, twice as long each
// time: each pass moves an element and its number in and out, and each block finds its own share of two runs by
// bisection. The order of all elements is strict, since those that are equal are distinguished by their numbers, so the
// result does not depend on how threads run.
#include "fluid.cuh"

const int TILE = 1024, SORTERS = 256, SHARE = TILE / SORTERS;

template <class C> __device__ __forceinline__ bool before(C a, C b, int down) {
  bool a_none = a != a, b_none = b != b;
  if (a_none || b_none) return a_none != b_none && a_none == bool(down);
  return down ? a > b : a < b;
}

// Lines x [lines of n, inner apart] in tiles of `width` elements, a power of 2; `tiles` of them for a line, which are
// side by side in y and at where there are several.
template <class T>
__global__ void sorted(const T* x, T* y, long long* at, long long lines, long long n, long long inner, int width,
                       long long tiles, int down) {
  __shared__ T values[TILE];
  __shared__ int places[TILE];
  int many = TILE / width;
  for (long long first = blockIdx.x * (long long)many; first < lines * tiles; first += gridDim.x * (long long)many) {
    __syncthreads();
    for (int i = threadIdx.x; i < TILE; i += SORTERS) {
      int own = inner > 1 ? i % many : i / width, k = inner > 1 ? i / many : i % width, s = own * width + k;
      long long tile = first + own, line = tile / tiles, place = tile % tiles * width + k;
      places[s] = tile < lines * tiles && place < n ? k : k + TILE;
      if (places[s] < TILE) values[s] = x[line / inner * n * inner + line % inner + place * inner];
    }
    for (int size = 2; size <= width; size <<= 1)
      for (int step = size >> 1; step; step >>= 1) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE / 2; i += SORTERS) {
          int low = i / step * 2 * step + i % step, high = low + step, p = places[low], q = places[high];
          bool swap;  // places from TILE on hold nothing and stay behind
          if (p >= TILE || q >= TILE) {
            swap = p > q;
          } else {
            wide_t<T> a = up<T>(values[low]), b = up<T>(values[high]);
            swap = before(b, a, down) || (!before(a, b, down) && p > q);
          }
          if (swap == ((low & size) == 0 || size == width)) {
            places[low] = q;
            places[high] = p;
            T value = values[low];
            values[low] = values[high];
            values[high] = value;
          }
        }
      }
    __syncthreads();
    for (int i = threadIdx.x; i < TILE; i += SORTERS) {
      int own = inner > 1 ? i % many : i / width, k = inner > 1 ? i / many : i % width, s = own * width + k;
      if (places[s] >= TILE) continue;
      long long tile = first + own, line = tile / tiles, start = tile % tiles * width;
      long long to = line / inner * n * inner + line % inner + (start + k) * inner;
      if (y) y[to] = values[s];
      if (at) at[to] = start + places[s];
    }
  }
}

// How many of the first `count` elements of two runs together come from the first one.
template <class T, class I>
__device__ __forceinline__ I taken_of(const T* a, I a_size, const T* b, I b_size, I count, int down) {
  I low = count > b_size ? count - b_size : 0, high = count < a_size ? count : a_size;
  while (low < high) {
    I middle = (low + high) / 2;
    if (before(up<T>(b[count - 1 - middle]), up<T>(a[middle]), down)) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Runs of `run` elements of x and at, two by two, as runs of twice as many in y and to; a block writes TILE elements.
template <class T>
__global__ void merged(const T* x, const long long* at, T* y, long long* to, long long lines, long long n, long long run,
                       int down) {
  __shared__ T values[TILE];
  __shared__ long long places[TILE];
  __shared__ long long bounds[2];
  long long tiles = (n + TILE - 1) / TILE;
  for (long long tile = blockIdx.x; tile < lines * tiles; tile += gridDim.x) {
    long long base = tile / tiles * n, first = tile % tiles * TILE, start = first / (2 * run) * (2 * run);
    long long left = n - start, a_size = left < run ? left : run, b_size = left - a_size < run ? left - a_size : run;
    long long from = first - start, until = from + TILE < a_size + b_size ? from + TILE : a_size + b_size;
    const T *a = x + base + start, *b = a + a_size;
    const long long *a_at = at + base + start, *b_at = a_at + a_size;
    __syncthreads();
    if (threadIdx.x < 2) bounds[threadIdx.x] = taken_of(a, a_size, b, b_size, threadIdx.x ? until : from, down);
    __syncthreads();
    long long a_from = bounds[0], b_from = from - a_from;
    int count = int(until - from), of_a = int(bounds[1] - a_from), of_b = count - of_a;
    for (int i = threadIdx.x; i < count; i += SORTERS) {
      values[i] = i < of_a ? a[a_from + i] : b[b_from + i - of_a];
      places[i] = i < of_a ? a_at[a_from + i] : b_at[b_from + i - of_a];
    }
    __syncthreads();
    int begin = threadIdx.x * SHARE < count ? threadIdx.x * SHARE : count;
    int p = taken_of<T, int>(values, of_a, values + of_a, of_b, begin, down), q = of_a + begin - p;
    T own[SHARE];
    long long own_at[SHARE];
#pragma unroll
    for (int k = 0; k < SHARE; ++k) {
      if (begin + k >= count) continue;
      bool second = p >= of_a || (q < count && before(up<T>(values[q]), up<T>(values[p]), down));
      int s = second ? q++ : p++;
      own[k] = values[s];
      own_at[k] = places[s];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < SHARE; ++k)
      if (begin + k < count) {
        values[begin + k] = own[k];
        places[begin + k] = own_at[k];
      }
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += SORTERS) {
      if (y) y[base + first + i] = values[i];
      if (to) to[base + first + i] = places[i];
    }
  }
}
