// Arithmetic with boxes [.., 4]: codes and back, overlaps of pairs, boxes held in their images, offsets as corners.
//
// A thread makes one element of the result, so that adjacent threads write adjacent elements; threads are arranged in
// rows and along them, and no element costs a division. What pairs of boxes read comes from a cache: all aim at the
// bandwidth of writing, and those that make an element of each also at that of reading.
#include "reduce.cuh"
#include "row_grid.cuh"

// The numbers that codes are divided by: of each prior, or one for each side of all.
#define SPREAD const wide_t<T> *spread, int fixed, double s0, double s1, double s2, double s3
template <class C>
__device__ __forceinline__ C spread_of(const C* spread, int fixed, double s0, double s1, double s2, double s3,
                                       long long prior, int k) {
  if (fixed) return C(k == 0 ? s0 : k == 1 ? s1 : k == 2 ? s2 : s3);
  return spread ? spread[4 * prior + k] : C(1);
}

// Row i: a target; along it every prior's code.
template <class T>
__global__ void encoded(const wide_t<T>* priors, SPREAD, const T* targets, T* out, double more, long long m,
                        long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(i, rows) ALONG(e, 4 * m) {
    const long long j = e >> 2;
    const int k = int(e & 3), a = k & 1;
    const C low = priors[4 * j + a], size = priors[4 * j + a + 2] - low + C(more);
    const C from = up<T>(targets[4 * i + a]), to = up<T>(targets[4 * i + a + 2]);
    C code;
    if (k < 2) {
      code = ((from + to) / 2 - (low + size / 2)) / size;
    } else {
      const C ratio = (to - from + C(more)) / size;
      code = log(ratio < 0 ? -ratio : ratio);
    }
    out[i * 4 * m + e] = down<T>(code / spread_of(spread, fixed, s0, s1, s2, s3, j, k));
  }
}

// A row of codes goes with priors along it, or with one prior.
template <class T>
__global__ void decoded(const wide_t<T>* priors, SPREAD, const T* codes, T* out, double more, int by_row, long long m,
                        long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(i, rows) ALONG(e, 4 * m) {
    const long long j = by_row ? i : e >> 2, at = i * 4 * m + (e & ~3LL);
    const int k = int(e & 3), a = k & 1;
    const C low = priors[4 * j + a], size = priors[4 * j + a + 2] - low + C(more);
    const C move = up<T>(codes[at + a]) * spread_of(spread, fixed, s0, s1, s2, s3, j, a);
    const C grow = up<T>(codes[at + a + 2]) * spread_of(spread, fixed, s0, s1, s2, s3, j, a + 2);
    const C middle = move * size + (low + size / 2), half = exp(grow) * size / 2;
    out[at + k] = down<T>(k < 2 ? middle - half : middle + half - C(more));
  }
}

template <class T>
__global__ void overlaps(const T* x, const T* y, T* out, double more, long long m, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(i, rows) {
    const C left = up<T>(x[4 * i]), top = up<T>(x[4 * i + 1]), right = up<T>(x[4 * i + 2]), bottom = up<T>(x[4 * i + 3]);
    const C area = (right - left + C(more)) * (bottom - top + C(more));
    ALONG(j, m) {
      const C l = up<T>(y[4 * j]), t = up<T>(y[4 * j + 1]), r = up<T>(y[4 * j + 2]), b = up<T>(y[4 * j + 3]);
      const C wide = join::smallest::both(right, r) - join::largest::both(left, l) + C(more);
      const C high = join::smallest::both(bottom, b) - join::largest::both(top, t) + C(more);
      const C shared = wide > 0 && high > 0 ? wide * high : C(0);
      const C all = area + (r - l + C(more)) * (b - t + C(more)) - shared;
      out[i * m + j] = down<T>(shared > 0 ? shared / all : C(0));
    }
  }
}

// Row i: boxes of image images[i], whose size is info[n] = height, width, scale.
template <class T>
__global__ void clipped(const T* x, const wide_t<T>* info, const int* images, T* out, long long width, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(i, rows) {
    const C* image = info + 3 * images[i];
    const C last_x = floor(image[1] / image[2] + C(0.5)) - 1, last_y = floor(image[0] / image[2] + C(0.5)) - 1;
    ALONG(e, width) {
      const C value = join::smallest::both(up<T>(x[i * width + e]), e & 1 ? last_y : last_x);
      out[i * width + e] = down<T>(join::largest::both(value, C(0)));
    }
  }
}

// A row is a row of a plane; planes of x and of y take turns.
template <class T> __global__ void corners(const T* x, T* out, long long h, long long w, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    const long long plane = r / h, y = r - plane * h;
    ALONG(j, w) out[r * w + j] = down<T>(C(4 * (plane & 1 ? y : j)) - up<T>(x[r * w + j]));
  }
}
