// accuracy and mean_iou: rows that are right, and elements of each class that are.
//
// Each label is read once, and little is written: both aim at the bandwidth of reading. Counts are whole numbers, which
// mind no order; a second, short launch makes shares of them. A class that there is not makes the mean NaN: a kernel
// cannot raise.
#include "reduce.cuh"

// Each block leaves how many of its rows have their label among k indices.
extern "C" __global__ void right_rows(const long long* indices, const long long* labels, int* partial, long long k,
                                      long long rows) {
  int found = 0;
  EACH(r, 0, rows) {
    long long label = labels[r];
    bool hit = false;
    for (long long j = 0; j < k; ++j) hit |= indices[r * k + j] == label;
    found += hit;
  }
  found = over_block<join::sum>(found);
  if (threadIdx.x == 0) partial[blockIdx.x] = found;
}

// One block.
extern "C" __global__ void share_of_rows(const int* partial, float* share, int* right, int* all, int blocks,
                                         long long rows) {
  int found = 0;
  for (int i = threadIdx.x; i < blocks; i += blockDim.x) found += partial[i];
  found = over_block<join::sum>(found);
  if (threadIdx.x) return;
  if (share) *share = rows ? float(double(found) / double(rows)) : 0.f;
  if (right) *right = found;
  if (all) *all = int(rows);
}

// Adds to the counts of each class; `beside` says whether those of a block fit in shared memory.
template <class I>
__global__ void class_counts(const I* guesses, const I* labels, int* right, int* wrong, int* strange, int classes,
                             int beside, long long n) {
  extern __shared__ int counts[];
  if (beside) {
    for (int k = threadIdx.x; k < 2 * classes; k += blockDim.x) counts[k] = 0;
    __syncthreads();
  }
  int *hits = beside ? counts : right, *misses = beside ? counts + classes : wrong;
  EACH(i, 0, n) {
    I guess = guesses[i], label = labels[i];
    if (guess < 0 || label < 0 || guess >= classes || label >= classes) {
      atomicAdd(strange, 1);
    } else if (guess == label) {
      atomicAdd(hits + guess, 1);
    } else {
      atomicAdd(misses + guess, 1);
      atomicAdd(misses + label, 1);
    }
  }
  if (beside) {
    __syncthreads();
    for (int k = threadIdx.x; k < classes; k += blockDim.x) {
      if (counts[k]) atomicAdd(right + k, counts[k]);
      if (counts[classes + k]) atomicAdd(wrong + k, counts[classes + k]);
    }
  }
}

// The mean over the classes that there are. One block.
extern "C" __global__ void mean_of_classes(const int* right, const int* wrong, const int* strange, float* mean,
                                           int classes) {
  double total = 0, there = 0;
  for (int k = threadIdx.x; k < classes; k += blockDim.x) {
    int all = right[k] + wrong[k];
    if (all > 0) {
      total += double(right[k]) / double(all);
      there += 1;
    }
  }
  total = over_block<join::sum>(total);
  there = over_block<join::sum>(there);
  if (threadIdx.x == 0) *mean = *strange || there == 0 ? NAN : float(total / there);
}
