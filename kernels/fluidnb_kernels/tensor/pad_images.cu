// Images padded with their own elements: reflected, replicated or circular; and the gradient.
//
// An image is [outer, depth, height, width, inner]. Forward reads and writes each element of the result once, the
// gradient reads each element of dOut once and writes each of dX, where it adds up the places that repeat it; both aim
// at the bandwidth of a device copy.
#include "row_grid.cuh"

enum border { REFLECT, EDGE, CIRCULAR };

// A dimension: its size in X, and its padding before and after it.
struct side { long long n, before, after; };

// The element of X that place `at` of Out shows.
__device__ __forceinline__ long long shown(side s, long long at, int mode) {
  long long p = at - s.before;
  if (p >= 0 && p < s.n) return p;
  if (mode == CIRCULAR) return (p % s.n + s.n) % s.n;
  if (p < 0) return mode == REFLECT ? -p : 0;
  return mode == REFLECT ? 2 * s.n - 2 - p : s.n - 1;
}

// The number of places of Out that repeat element i of X, before and after it, and the t-th of them.
__device__ __forceinline__ long long earlier(side s, long long i, int mode) {
  if (mode == EDGE) return i == 0 ? s.before : 0;
  return mode == REFLECT ? i >= 1 && i <= s.before : (s.before + i) / s.n;
}
__device__ __forceinline__ long long later(side s, long long i, int mode) {
  if (mode == EDGE) return i == s.n - 1 ? s.after : 0;
  return mode == REFLECT ? i <= s.n - 2 && s.n - 1 - i <= s.after : (s.after + s.n - 1 - i) / s.n;
}
__device__ __forceinline__ long long place(side s, long long i, long long t, int mode) {
  if (mode == CIRCULAR) return (s.before + i) % s.n + t * s.n;
  long long before = earlier(s, i, mode);
  if (t == before) return s.before + i;
  if (mode == EDGE) return t < before ? t : s.before + i + t - before;
  return t < before ? s.before - i : s.before + 2 * s.n - 2 - i;
}

#define SIDE(name) long long name##_size, long long name##_before, long long name##_after
#define A_SIDE(name) {name##_size, name##_before, name##_after}
__device__ __forceinline__ long long whole(side s) { return s.before + s.n + s.after; }

template <class W>
__global__ void bordered(const void* from, void* to, SIDE(d), SIDE(h), SIDE(w), long long inner, int mode,
                         long long rows) {
  const side d = A_SIDE(d), h = A_SIDE(h), w = A_SIDE(w);
  long long width = whole(w) * inner;
  EACH_ROW(r, rows) {
    long long y = shown(h, r % whole(h), mode), plane = r / whole(h), z = shown(d, plane % whole(d), mode);
    const W* x = static_cast<const W*>(from) + ((plane / whole(d) * d.n + z) * h.n + y) * w.n * inner;
    W* out = static_cast<W*>(to) + r * width;
    ALONG(j, width) out[j] = x[inner == 1 ? shown(w, j, mode) : shown(w, j / inner, mode) * inner + j % inner];
  }
}

template <class T>
__global__ void bordered_grad(const T* g, T* dx, SIDE(d), SIDE(h), SIDE(w), long long inner, int mode, long long rows) {
  const side d = A_SIDE(d), h = A_SIDE(h), w = A_SIDE(w);
  long long width = w.n * inner;
  EACH_ROW(r, rows) {
    long long y = r % h.n, plane = r / h.n, z = plane % d.n, image = plane / d.n;
    long long deep = 1 + earlier(d, z, mode) + later(d, z, mode), high = 1 + earlier(h, y, mode) + later(h, y, mode);
    ALONG(j, width) {
      long long i = j / inner, wide = 1 + earlier(w, i, mode) + later(w, i, mode);
      wide_t<T> total = 0;
      for (long long a = 0; a < deep; ++a)
        for (long long b = 0; b < high; ++b) {
          const T* row = g + ((image * whole(d) + place(d, z, a, mode)) * whole(h) + place(h, y, b, mode)) * whole(w) * inner;
          for (long long c = 0; c < wide; ++c) total += up<T>(row[place(w, i, c, mode) * inner + j % inner]);
        }
      dx[r * width + j] = down<T>(total);
    }
  }
}
