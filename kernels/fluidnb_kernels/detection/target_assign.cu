// The targets of priors: rows of X by the object that a prior is matched with, a constant where there is none.
//
// Both kernels only move memory: a thread copies one element, threads beside each other copy elements beside each other.
// An index outside the objects of its image, or outside the priors, stops the kernel.
#include "row_grid.cuh"

// Row r: prior r % priors of image r / priors. level: where the objects of each image begin.
template <class T>
__global__ void matched(const T* x, const int* match, const int* level, T* out, float* weight, T mismatch,
                        long long columns, long long width, long long priors, long long rows) {
  EACH_ROW(r, rows) {
    const long long image = r / priors, prior = r - image * priors;
    const int object = match[r];
    if (object > -1 && object >= level[image + 1] - level[image]) __trap();
    const T* from = x + ((level[image] + (long long)object) * columns + prior % columns) * width;
    ALONG(k, out ? width : 0) out[r * width + k] = object > -1 ? from[k] : mismatch;
    if (weight && threadIdx.x == 0 && blockIdx.y == 0) weight[r] = object > -1 ? 1.f : 0.f;
  }
}

template <class T>
__global__ void negatives(const int* chosen, const int* image, T* out, float* weight, T mismatch, long long width,
                          long long priors, long long count) {
  EACH(i, 0, count) {
    if (chosen[i] < 0 || chosen[i] >= priors) __trap();
    const long long row = image[i] * priors + chosen[i];
    for (long long k = 0; out && k < width; k++) out[row * width + k] = mismatch;
    if (weight) weight[row] = 1.f;
  }
}
