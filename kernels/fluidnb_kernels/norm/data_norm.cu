// data_norm: rows normalised with counts, sums and squares over all data, and what a batch adds to these.
//
// Forward moves each element in and out once. The gradient reads X and dY and writes dX once, and adds up five numbers
// of a column on the way: blocks leave theirs in parts, which a second launch joins, always in the same order. Both aim
// at the bandwidth of a device copy.
#include "reduce.cuh"
#include "row_grid.cuh"

// Whether column j of a row belongs to a slot that the row has: the first column of the slot is not 0.
template <class T> __device__ __forceinline__ bool seen(const T* row, long long j, long long width) {
  typedef wide_t<T> C;
  if (width <= 0) return true;
  C first = up<T>(row[j / width * width]);
  return (first < C(0) ? -first : first) >= C(1e-7);
}

// Y is null where there are no rows.
template <class T>
__global__ void data_norm(const T* x, const wide_t<T>* count, const wide_t<T>* total, const wide_t<T>* squares,
                          const wide_t<T>* factor, const wide_t<T>* bias, T* y, wide_t<T>* means, wide_t<T>* scales,
                          long long width, long long columns, long long rows) {
  typedef wide_t<T> C;
  ALONG(j, columns) {
    C n = count[j], mean = total[j] / n, scale = sqrt(n / squares[j]);
    if (blockIdx.x == 0 && threadIdx.y == 0) {
      means[j] = mean;
      scales[j] = scale;
    }
    EACH_ROW(r, y ? rows : 0) {
      const T* row = x + r * columns;
      C v = (up<T>(row[j]) - mean) * scale;
      if (factor) v = v * factor[j] + bias[j];
      y[r * columns + j] = down<T>(seen(row, j, width) ? v : C(0));
    }
  }
}

// Sums of 32 columns beside each other in a block, at parts[(sum * gridDim.y + part) * columns + column].
template <class T>
__global__ void data_norm_grad(const T* x, const wide_t<T>* means, const wide_t<T>* scales, const wide_t<T>* factor,
                               const T* g, T* dx, wide_t<T>* parts, long long width, long long rows, long long columns) {
  typedef wide_t<T> C;
  EACH_LINE(j, columns, COLUMNS) {
    C sums[5] = {};
    if (j < columns) {
      C mean = means[j], scale = scales[j], slope = factor ? scale * factor[j] : scale;
      for (long long r = blockIdx.y * TEAM + threadIdx.y; r < rows; r += gridDim.y * TEAM) {
        const T* row = x + r * columns;
        bool there = seen(row, j, width);
        C own = there ? up<T>(g[r * columns + j]) : C(0), v = up<T>(row[j]), centred = v - mean;
        if (dx) dx[r * columns + j] = down<T>(own * slope);
        if (there) {
          sums[0] += C(1);
          sums[1] += v;
          sums[2] += centred * centred;
        }
        sums[3] += own * centred * scale;
        sums[4] += own;
      }
    }
#pragma unroll
    for (int s = 0; s < 5; ++s) {
      C all = over_line<join::sum>(sums[s], COLUMNS);
      if (j < columns && threadIdx.y == 0) parts[(s * (long long)gridDim.y + blockIdx.y) * columns + j] = all;
    }
  }
}

template <class C>
__global__ void data_norm_join(const C* parts, C* count, C* total, C* squares, C* factor, C* bias, long long width,
                               double epsilon, int many, long long columns) {
  EACH(j, 0, columns) {
    C sums[5] = {};
#pragma unroll
    for (int s = 0; s < 5; ++s)
      for (int part = 0; part < many; ++part) sums[s] += parts[(s * (long long)many + part) * columns + j];
    C n = sums[0], some = n > C(1) ? n : C(1);
    // with slots the mean of the rows that have one counts as one row
    count[j] = width > 0 && n > C(1) ? C(1) : n;
    total[j] = width > 0 ? sums[1] / some : sums[1];
    squares[j] = (width > 0 ? sums[2] / some : sums[2]) + n * C(epsilon);
    factor[j] = sums[3];
    bias[j] = sums[4];
  }
}
