// Statistics of a tensor for debuggers and pictures, so that only results are copied to the host.
//
// count reads every element of its sample once, and writes a row of facts for each block; join_counts makes one row of
// them. spread reads them once more, now that mean and ends are known. All of them compute in double, as numpy does it
// on the host, and aim at the bandwidth of reading. What is summed meets in trees of fixed shape: the result has the
// same bits each time.
#include "reduce.cuh"
#include "rounded.cuh"

#define BINS 16

template <class T> __device__ __forceinline__ double number(T x) { return double(up<T>(x)); }

// ---- facts: counts of elements that are not finite, and sums of the others

struct facts { double nan, above, below, zeros, low, high, total, sizes, squares; };

__device__ __forceinline__ facts no_facts() {
  facts f = {0, 0, 0, 0, ends<double>::high(), ends<double>::low(), 0, 0, 0};
  return f;
}
__device__ __forceinline__ void note(facts& f, double x) {
  if (x - x == 0) {
    f.zeros += x == 0;
    f.low = join::smallest::both(x, f.low);
    f.high = join::largest::both(x, f.high);
    f.total += x;
    f.sizes += fabs(x);
    f.squares += product_of(x, x);
  } else if (x > 0) {
    ++f.above;
  } else if (x < 0) {
    ++f.below;
  } else {
    ++f.nan;
  }
}
__device__ __forceinline__ void write(double* rows, long long row, facts f) {
  f.nan = over_block<join::sum>(f.nan);
  f.above = over_block<join::sum>(f.above);
  f.below = over_block<join::sum>(f.below);
  f.zeros = over_block<join::sum>(f.zeros);
  f.low = over_block<join::smallest>(f.low);
  f.high = over_block<join::largest>(f.high);
  f.total = over_block<join::sum>(f.total);
  f.sizes = over_block<join::sum>(f.sizes);
  f.squares = over_block<join::sum>(f.squares);
  if (threadIdx.x == 0) reinterpret_cast<facts*>(rows)[row] = f;
}

// Of every step-th of x, or of its differences from y where there is a y.
template <class T> __global__ void count(const T* x, const T* y, double* out, long long step, long long n) {
  facts f = no_facts();
#pragma unroll 4
  EACH(i, 0, n) note(f, number(x[i * step]) - (y ? number(y[i * step]) : 0));
  write(out, blockIdx.x, f);
}

extern "C" __global__ void join_counts(const double* rows, double* out, long long n) {
  facts f = no_facts();
  EACH(i, 0, n) {
    facts g = reinterpret_cast<const facts*>(rows)[i];
    f.nan += g.nan;
    f.above += g.above;
    f.below += g.below;
    f.zeros += g.zeros;
    f.low = join::smallest::both(g.low, f.low);
    f.high = join::largest::both(g.high, f.high);
    f.total += g.total;
    f.sizes += g.sizes;
    f.squares += g.squares;
  }
  write(out, 0, f);
}

// ---- deviation and histogram of the finite ones: the sum of squared differences from the mean, then counts

// numpy's edges, digit by digit, and its bins: a guess, and one step where an edge says otherwise.
__device__ __forceinline__ double edge(int k, double low, double width) {
  return sum_of(product_of(double(k), width / BINS), low);
}
__device__ __forceinline__ int bin(double x, double low, double high) {
  double width = high - low;
  int k = int((x - low) / width * BINS);
  k = k < 0 ? 0 : k > BINS - 1 ? BINS - 1 : k;
  if (k > 0 && x < edge(k, low, width)) return k - 1;
  return k < BINS - 1 && x >= edge(k + 1, low, width) ? k + 1 : k;
}

template <class T>
__global__ void spread(const T* x, const double* known, double* out, long long step, long long n) {
  __shared__ unsigned counts[BINS];
  facts f = *reinterpret_cast<const facts*>(known);
  double mean = f.total / (double(n) - f.nan - f.above - f.below), squares = 0;
  double low = f.high > f.low ? f.low : f.low - 0.5, high = f.high > f.low ? f.high : f.high + 0.5;
  if (threadIdx.x < BINS) counts[threadIdx.x] = 0;
  __syncthreads();
  EACH(i, 0, n) {
    double v = number(x[i * step]);
    if (v - v != 0) continue;
    squares += product_of(v - mean, v - mean);
    atomicAdd(counts + bin(v, low, high), 1u);
  }
  squares = over_block<join::sum>(squares);
  __syncthreads();
  if (threadIdx.x < BINS) out[blockIdx.x * (BINS + 1) + 1 + threadIdx.x] = counts[threadIdx.x];
  if (threadIdx.x == 0) out[blockIdx.x * (BINS + 1)] = squares;
}

extern "C" __global__ void join_spreads(const double* rows, double* out, long long n) {
  for (int k = 0; k <= BINS; ++k) {
    double s = 0;
    EACH(i, 0, n) s += rows[i * (BINS + 1) + k];
    s = over_block<join::sum>(s);
    if (threadIdx.x == 0) out[k] = s;
  }
}

// ---- whether anything is NaN or infinite

template <class T> __global__ void find_odd(const T* x, int* found, long long n) {
  bool odd = false;
#pragma unroll 4
  EACH(i, 0, n) {
    wide_t<T> v = up<T>(x[i]);
    odd |= v - v != wide_t<T>(0);
  }
  if (odd) atomicOr(found, 1);
}

// ---- whether two tensors hold other bits, W being a word of the size of an element

template <class W> __global__ void find_other(const void* one, const void* two, int* found, long long n) {
  const W *x = static_cast<const W*>(one), *y = static_cast<const W*>(two);
  bool other = false;
#pragma unroll 4
  EACH(i, 0, n) other |= x[i] != y[i];
  if (other) atomicOr(found, 1);
}

// ---- a number for all the bits of every step-th element, W being a word of its size

template <class W>
__global__ void mark(const void* from, unsigned long long* out, long long step, long long n) {
  const W* x = static_cast<const W*>(from);
  unsigned long long s = 0;
  EACH(i, 0, n) {
    unsigned long long h = static_cast<unsigned long long>(x[i * step]) + (i + 1) * 0x9e3779b97f4a7c15ull;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ h >> 27) * 0x94d049bb133111ebull;
    s += h ^ h >> 31;
  }
  s = over_block<join::sum>(s);
  if (threadIdx.x == 0) out[blockIdx.x] = s;
}

// ---- elements where three lists of places meet: a places of the first, b of the second, then c of the third

template <class W>
__global__ void pick(const void* from, const long long* places, void* to, long long a, long long b, long long c,
                     long long n) {
  const W* x = static_cast<const W*>(from);
  W* out = static_cast<W*>(to);
  EACH(i, 0, n) out[i] = x[places[i / c / b] + places[a + i / c % b] + places[a + b + i % c]];
}
