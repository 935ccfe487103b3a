// cross, conv_shift and bilinear_tensor_product: products of vectors, and the gradients.
//
// cross reads two elements for each that it writes; conv_shift and the sums of bilinear_tensor_product read theirs once
// from memory and then from caches. All aim at the bandwidth of a device copy; the large part of
// bilinear_tensor_product are products of matrices, which gemm makes.
#include "reduce.cuh"
#include "row_grid.cuh"

#define OWN(k) EACH_MEMBER(k, line < lines ? n : 0, way)

// ---- the product at right angles: vectors of three elements, `inner` apart

template <class T>
__global__ void cross(const T* x, const T* y, T* out, long long inner, long long count) {
  typedef wide_t<T> C;
  EACH(i, 0, count) {
    long long at = i / inner * 3 * inner + i % inner;
    C p[3], q[3];
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      p[k] = up<T>(x[at + k * inner]);
      q[k] = up<T>(y[at + k * inner]);
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      int one = (k + 1) % 3, two = (k + 2) % 3;
      out[at + k * inner] = down<T>(p[one] * q[two] - p[two] * q[one]);
    }
  }
}

// ---- circular convolution of rows of m with rows of k, k at most m

__device__ __forceinline__ long long around(long long at, long long m) { return at < 0 ? at + m : at < m ? at : at - m; }

// Out of x at i and around it: to the right with step 1, to the left with step -1.
template <class T>
__global__ void shifted(const T* x, const T* y, T* out, int step, long long m, long long k, long long count) {
  EACH(i, 0, count) {
    long long row = i / m, at = around(i - row * m - step * ((k - 1) / 2), m);
    wide_t<T> total = 0;
    for (long long j = 0; j < k; ++j) {
      total += up<T>(x[row * m + at]) * up<T>(y[row * k + j]);
      at = around(at + step, m);
    }
    out[i] = down<T>(total);
  }
}

// The gradient of weight j of a row.
template <class T>
__global__ void shifted_weights(const T* x, const T* g, T* dy, long long k, long long lines, long long n,
                                long long inner, int way) {
  EACH_LINE(line, lines, way) {
    long long row = line / k, by = line - row * k - (k - 1) / 2;
    wide_t<T> total = 0;
    OWN(i) total += up<T>(g[row * n + i]) * up<T>(x[row * n + around(i + by, n)]);
    total = over_line<join::sum>(total, way);
    if (line < lines && member(way) == 0) dy[line] = down<T>(total);
  }
}

// ---- bilinear products: half [rows, size, e] is X times each weight

template <class T>
__global__ void bilinear(const T* half, const T* y, const T* bias, T* out, long long size, long long lines, long long n,
                         long long inner, int way) {
  EACH_LINE(line, lines, way) {
    long long row = line / size;
    T total = 0;
    OWN(k) total += half[line * n + k] * y[row * n + k];
    total = over_line<join::sum>(total, way);
    if (line < lines && member(way) == 0) out[line] = bias ? total + bias[line - row * size] : total;
  }
}

template <class T>
__global__ void bilinear_y(const T* half, const T* g, T* dy, long long size, long long width, long long rows) {
  EACH_ROW(r, rows) ALONG(j, width) {
    T total = 0;
    for (long long s = r * size; s < (r + 1) * size; ++s) total += g[s] * half[s * width + j];
    dy[r * width + j] = total;
  }
}

// y times each element of g: [rows / size, size, width]
template <class T>
__global__ void bilinear_outer(const T* g, const T* y, T* out, long long size, long long width, long long rows) {
  EACH_ROW(r, rows) ALONG(j, width) out[r * width + j] = g[r] * y[r / size * width + j];
}
