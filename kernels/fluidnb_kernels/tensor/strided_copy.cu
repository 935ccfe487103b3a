// Elements copied from anywhere to anywhere: slice, concat, split, stack, expand, reverse, crop, pad, transpose.
//
// Each moves one read and one write for an element and computes nothing, so the bound is the bandwidth of a device
// copy. T is a word of 1 to 16 bytes, as many elements as are contiguous in both tensors, so that runs are loaded
// and stored 16 bytes at a time. Where the contiguous elements of one tensor are far apart in the other, `tiled`
// goes through shared memory, so that reads and writes both are whole lines.
#include "strides.cuh"

template <class T, int D>
__global__ void strided(const void* from, void* to, long long from_begin, long long to_begin, SIZES, STEPS(f), STEPS(t),
                        long long count) {
  const T* x = static_cast<const T*>(from) + from_begin;
  T* y = static_cast<T*>(to) + to_begin;
  const unsigned long long sizes[5] = ALL_SIZES;
  const long long fs[6] = ALL_STEPS(f), ts[6] = ALL_STEPS(t);
  EACH(i, 0, count) {
    long long a = 0, b = 0;
    locate<D>(unsigned(i), sizes, shifts, fs, ts, a, b);
    y[b] = x[a];
  }
}

// Tiles of two dimensions: down `rows`, which are contiguous in the target and `from_step` apart in the source, and
// across `columns`, the other way round. Four more dimensions count the planes.
const int TILE = 32, STRIPE = 8;

template <class T>
__global__ void tiled(const void* from, void* to, long long from_begin, long long to_begin, SIZES, STEPS(f), STEPS(t),
                      long long rows, long long columns, long long from_step, long long to_step) {
  __shared__ T tile[TILE][TILE + 1];
  const unsigned long long sizes[5] = ALL_SIZES;
  const long long fs[6] = ALL_STEPS(f), ts[6] = ALL_STEPS(t);
  long long down = (rows + TILE - 1) / TILE, across = (columns + TILE - 1) / TILE, block = blockIdx.x;
  long long row = block % down * TILE, column = block / down % across * TILE, a = from_begin, b = to_begin;
  locate<4>(unsigned(block / down / across), sizes, shifts, fs, ts, a, b);
  const T* x = static_cast<const T*>(from) + a;
  T* y = static_cast<T*>(to) + b;
  for (int k = threadIdx.y; k < TILE; k += STRIPE)
    if (row + k < rows && column + threadIdx.x < columns)
      tile[k][threadIdx.x] = x[(row + k) * from_step + column + threadIdx.x];
  __syncthreads();
  for (int k = threadIdx.y; k < TILE; k += STRIPE)
    if (column + k < columns && row + threadIdx.x < rows)
      y[(column + k) * to_step + row + threadIdx.x] = tile[threadIdx.x][k];
}

// ---- one value everywhere: one write for an element

template <class T> __device__ __forceinline__ T word_of(unsigned long long bits) { return T(bits); }
template <> __device__ __forceinline__ uint4 word_of<uint4>(unsigned long long bits) {
  unsigned low = unsigned(bits), high = unsigned(bits >> 32);
  return make_uint4(low, high, low, high);
}

template <class T>
__global__ void filled(void* to, unsigned long long bits, long long count) {
  EACH(i, 0, count) static_cast<T*>(to)[i] = word_of<T>(bits);
}

// ---- sums over a dimension: A [outer, length, inner] to B [outer, parts, inner]. One read for an element of A; where
// few sums are long, parts keep all threads busy, and a second launch adds them up, always in the same order.

template <class A, class B>
__global__ void folded(const A* x, B* y, long long length, long long parts, long long inner, long long count) {
  EACH(i, 0, count) {
    long long j = i % inner, row = i / inner;
    const A* first = x + row / parts * length * inner + j;
    wide_t<A> total = 0;
    for (long long k = row % parts; k < length; k += parts) total += up<A>(first[k * inner]);
    y[i] = down<B>(wide_t<B>(total));
  }
}
