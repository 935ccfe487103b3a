// Products of matrices: out = alpha · x · y + beta · out, for each matrix of a batch.
//
// The product without cuBLAS. A block makes a tile of SIDE x SIDE elements, a thread PART x PART of
// them in registers: SIDE * DEPTH elements of x and of y are read for SIDE * SIDE * DEPTH products, so large matrices
// are bound by arithmetic. X_DOWN and Y_DOWN say that an operand is transposed in memory; either way the threads of a warp read
// contiguous elements. Half precision is added up in float.
#include "fluid.cuh"

const int SIDE = 64, DEPTH = 16, PART = 4, LINE = SIDE / PART;

// A tile [SIDE][DEPTH] of an operand, whose element (i, k) lies at i * row + k, or at k * row + i where it lies DOWN.
template <class T, bool DOWN>
__device__ __forceinline__ void take(wide_t<T> (*tile)[SIDE + 1], const T* from, long long row, int i0, int k0,
                                     int sides, int depth) {
  for (int e = threadIdx.x; e < SIDE * DEPTH; e += LINE * LINE) {
    const int i = DOWN ? e % SIDE : e / DEPTH, k = DOWN ? e / SIDE : e % DEPTH;
    const bool there = i0 + i < sides && k0 + k < depth;
    tile[k][i] = there ? up(from[DOWN ? (k0 + k) * row + (i0 + i) : (i0 + i) * row + (k0 + k)]) : wide_t<T>(0);
  }
}

template <class T, bool X_DOWN, bool Y_DOWN>
__global__ void __launch_bounds__(LINE * LINE, 2)
    gemm(const T* x, const T* y, T* out, int m, int n, int depth, long long x_row, long long y_row, long long out_row,
         long long x_step, long long y_step, long long out_step, double alpha, double beta, int batch) {
  __shared__ wide_t<T> xs[DEPTH][SIDE + 1], ys[DEPTH][SIDE + 1];
  const int across = (n + SIDE - 1) / SIDE, i = threadIdx.x / LINE, j = threadIdx.x % LINE;
  const int i0 = blockIdx.x / across * SIDE, j0 = blockIdx.x % across * SIDE;
  for (int at = blockIdx.z; at < batch; at += gridDim.z) {
    wide_t<T> sum[PART][PART] = {};
    for (int k0 = 0; k0 < depth; k0 += DEPTH) {
      take<T, X_DOWN>(xs, x + at * x_step, x_row, i0, k0, m, depth);
      take<T, !Y_DOWN>(ys, y + at * y_step, y_row, j0, k0, n, depth);
      __syncthreads();
#pragma unroll 4
      for (int k = 0; k < DEPTH; k++)
        for (int a = 0; a < PART; a++)
          for (int c = 0; c < PART; c++) sum[a][c] += xs[k][i + a * LINE] * ys[k][j + c * LINE];
      __syncthreads();
    }
    for (int a = 0; a < PART; a++)
      for (int c = 0; c < PART; c++) {
        const int row = i0 + i + a * LINE, column = j0 + j + c * LINE;
        if (row < m && column < n) {
          T* to = out + at * out_step + row * out_row + column;
          const wide_t<T> made = wide_t<T>(alpha) * sum[a][c];
          *to = down<T>(beta == 0 ? made : made + wide_t<T>(beta) * up(*to));
        }
      }
  }
}
