// Rows of the same number added up, alone or to those of a whole tensor; gradients of rows that were looked up, as
// SelectedRows.
//
// Reads each value once and writes each sum once, a block for a sum and its threads side by side along the row, so that
// all accesses are whole lines: bound by the bandwidth of device memory. A sum takes its values of the rows.
#include "fluid.cuh"

// Row i of out is the sum of the rows order[from[i]] to order[from[i + 1] - 1] of x.
template <class T>
__global__ void merged(const long long* order, const long long* from, const T* x, T* out, long long width,
                       long long rows) {
  for (long long row = blockIdx.x; row < rows; row += gridDim.x)
    for (long long j = threadIdx.x; j < width; j += blockDim.x) {
      wide_t<T> total = 0;
      for (long long k = from[row]; k < from[row + 1]; ++k) total += up<T>(x[order[k] * width + j]);
      out[row * width + j] = down<T>(total);
    }
}

// Row numbers[i] of whole has the same sum added to it.
template <class T>
__global__ void add_rows(const long long* numbers, const long long* order, const long long* from, const T* x, T* whole,
                         long long width) {
  const long long row = blockIdx.x;
  for (long long j = threadIdx.x; j < width; j += blockDim.x) {
    wide_t<T> total = 0;
    for (long long k = from[row]; k < from[row + 1]; ++k) total += up<T>(x[order[k] * width + j]);
    T& at = whole[numbers[row] * width + j];
    at = down<T>(up<T>(at) + total);
  }
}

// The rows of a tensor, those of one number as zeros.
template <class T, class I>
__global__ void but_padding(const I* ids, const T* g, T* out, long long padding, long long width,
                            long long count) {
  EACH(i, 0, count) out[i] = ids[i / width] == padding ? down<T>(0) : g[i];
}
