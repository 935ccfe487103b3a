// Codes of a box for each class as boxes, and the box of the likeliest class.
//
// A thread makes one side of a box, so that threads beside each other write beside each other: both aim at the
// bandwidth of reading and writing.
#include "row_grid.cuh"

// Side k of the box that the code at `code` means for a prior.
template <class T>
__device__ __forceinline__ wide_t<T> side(const wide_t<T>* prior, const wide_t<T>* spread, const T* code, int k,
                                          double most) {
  typedef wide_t<T> C;
  const int a = k & 1;
  const C size = prior[a + 2] - prior[a] + 1, middle = prior[a] + size / 2;
  const C place = up<T>(code[a]) * spread[a] * size + middle;
  C grow = up<T>(code[a + 2]) * spread[a + 2];
  grow = grow > C(most) ? C(most) : grow;
  const C reach = exp(grow) * size / 2;
  return k < 2 ? place - reach : place + reach - 1;
}

template <class T>
__global__ void boxes(const wide_t<T>* priors, const wide_t<T>* spread, const T* codes, T* out, double most,
                      long long classes, long long rows) {
  EACH_ROW(i, rows) ALONG(e, 4 * classes) {
    const long long at = i * 4 * classes;
    out[at + e] = down<T>(side<T>(priors + 4 * i, spread, codes + at + (e & ~3LL), int(e & 3), most));
  }
}

// The first class of the highest score but class 0; the prior where no score is above -1.
template <class T>
__global__ void best(const wide_t<T>* priors, const wide_t<T>* spread, const T* codes, const T* scores, T* out,
                     double most, long long classes, long long rows) {
  EACH_ROW(i, rows) ALONG(e, 4) {
    long long found = 0;
    wide_t<T> highest = -1;
    for (long long c = 1; c < classes; c++) {
      const wide_t<T> score = up<T>(scores[i * classes + c]);
      if (score > highest) {
        highest = score;
        found = c;
      }
    }
    const T* code = codes + 4 * (i * classes + found);
    out[4 * i + e] = down<T>(found ? side<T>(priors + 4 * i, spread, code, int(e), most) : priors[4 * i + e]);
  }
}
