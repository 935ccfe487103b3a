// Random tensors, with the very numbers of the host: uniform_random, gaussian_random, sampling_id.
//
// Nothing is read but the probabilities of sampling_id, so that the others aim at the bandwidth of writing; ten rounds
// of a dozen operations make four words. Normal numbers are made in double, as they are on the host, two from two words
// by the method of Box and Muller: they are bound by arithmetic. In half precision each step is rounded as the host's.
#include "philox.cuh"

template <class T> __device__ __forceinline__ T scaled(wide_t<T> u, double width, double low) {
  typedef wide_t<T> C;
  C wide = up<T>(down<T>(product_of(up<T>(down<T>(u)), C(width))));
  return down<T>(sum_of(wide, C(low)));
}

template <class T>
__global__ void uniform(STREAM, T* out, double width, double low, long long n) {
  typedef unit<wide_t<T>> numbers;
  EACH(block, 0, (n + numbers::count - 1) / numbers::count) {
    block_of_words words = WORDS(block);
#pragma unroll
    for (int i = 0; i < numbers::count; ++i) {
      long long at = block * numbers::count + i;
      if (at < n) out[at] = scaled<T>(numbers::at(words.at, i), width, low);
    }
  }
}

// Element i of the first half comes from words i and half + i, as does its neighbour in the second half.
template <class T>
__global__ void normal(STREAM, T* out, double mean, double deviation, long long n) {
  typedef wide_t<T> C;
  long long half = (n + 1) / 2;
  int shift = int(half % 4);
  EACH(block, 0, (half + 3) / 4) {
    block_of_words first = WORDS(block), second = WORDS(block + half / 4), third = second;
    if (shift) third = WORDS(block + half / 4 + 1);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      long long at = block * 4 + i;
      if (at >= half) continue;
      double u = unit<double>::at(first.at, i);
      double v = i + shift < 4 ? unit<double>::at(second.at, (i + shift) & 3) : unit<double>::at(third.at, (i + shift) & 3);
      double radius = ::sqrt(-2. * ::log1p(-u)), angle = 6.283185307179586 * v;
      out[at] = down<T>(C(sum_of(mean, product_of(deviation, radius * ::cos(angle)))));
      if (half + at < n) out[half + at] = down<T>(C(sum_of(mean, product_of(deviation, radius * ::sin(angle)))));
    }
  }
}

// A class for each row, by the first sum of its probabilities that is above a number; a thread adds up a row in order,
// and the block brings 32 rows of 32 classes at a time to it.
const int SIDE = 32;

template <class T>
__global__ void classes(STREAM, const T* x, long long* out, double width, double low, long long count, long long rows) {
  typedef wide_t<T> C;
  __shared__ C tile[SIDE][SIDE + 1];
  for (long long first = blockIdx.x * (long long)SIDE; first < rows; first += gridDim.x * (long long)SIDE) {
    long long row = first + threadIdx.x, passed = 0;
    bool mine = threadIdx.y == 0 && row < rows;
    double chance = 0;
    if (mine) chance = scaled<double>(unit<double>::at(WORDS(row / 4).at, int(row % 4)), width, low);
    C total = 0;
    for (long long start = 0; start < count; start += SIDE) {
      __syncthreads();
      for (int k = threadIdx.y; k < SIDE; k += blockDim.y)
        if (first + k < rows && start + threadIdx.x < count)
          tile[k][threadIdx.x] = up<T>(x[(first + k) * count + start + threadIdx.x]);
      __syncthreads();
      if (!mine) continue;
      for (int k = 0; k < SIDE && start + k < count; ++k) {
        total += tile[threadIdx.x][k];
        passed += double(total) <= chance;
      }
    }
    if (mine) out[row] = passed < count ? passed : count - 1;
  }
}
