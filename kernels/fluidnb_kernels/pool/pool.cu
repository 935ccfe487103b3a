// The largest element or the mean of each window of images [plane, d, h, w, inner], and the gradients of both.
//
// A thread makes an element of the result, or a warp does where windows are large. From memory come one read of X and
// one write of Out, elements that windows share come from caches; gradients read the result's and write that of X. All
// aim at the bandwidth of a device copy. Gradients gather: an element of X goes through the windows that it is in, so
// that it is added up in the same order every time. For largest elements, `largest` first says where each one is.
#include "reduce.cuh"
#include "sliding_windows.cuh"

enum { OUT = 1, WHERE = 2, STRICT = 4, ALWAYS = 8, EXCLUSIVE = 16, ADD = 32 };  // flags, as Python numbers them

struct span { int from, to; };

// The elements of a window that are in the image.
__device__ __forceinline__ span window_of(axis a, int o) {
  if (a.stride == 0) {
    span s = {int(o * (long long)a.size / a.out), int(((o + 1) * (long long)a.size + a.out - 1) / a.out)};
    return s;
  }
  const int from = o * a.stride - a.low, to = from + a.window;
  span s = {from < 0 ? 0 : from, to > a.size ? a.size : to};
  if (s.to < s.from) s.to = s.from;
  return s;
}
__device__ __forceinline__ bool sticks_out(axis a, int o) {
  const int from = o * a.stride - a.low;
  return a.stride && (from < 0 || from + a.window > a.size);
}
// By how many elements along an axis a mean is divided; with the padding where it is not EXCLUSIVE.
__device__ __forceinline__ int counted(axis a, int o, int flags) {
  const span s = window_of(a, o);
  if (flags & EXCLUSIVE) return s.to - s.from;
  const int from = o * a.stride - a.low, to = from + a.window;
  return (to > a.size + a.low ? a.size + a.low : to) - from;
}
// The windows that element p is in.
__device__ __forceinline__ span windows_with(axis a, int p) {
  if (a.stride == 0) {
    span s = {int(p * (long long)a.out / a.size), int(((p + 1) * (long long)a.out + a.size - 1) / a.size)};
    return s;
  }
  const int from = p + a.low - a.window + 1, to = (p + a.low) / a.stride + 1;
  span s = {from <= 0 ? 0 : (from + a.stride - 1) / a.stride, to > a.out ? a.out : to};
  return s;
}

// The elements of a window, or each `by` of them.
struct window_elements {
  span zs, ys, xs;
  int z, y, x;
  __device__ __forceinline__ window_elements(span d, span h, span w, int first) : zs(d), ys(h), xs(w), z(d.from), y(h.from), x(w.from) {
    if (h.from == h.to || w.from == w.to) z = d.to;
    else on(first);
  }
  __device__ __forceinline__ bool inside() const { return z < zs.to; }
  __device__ __forceinline__ void on(int by) {
    for (x += by; x >= xs.to; x -= xs.to - xs.from)
      if (++y >= ys.to) {
        y = ys.from;
        ++z;
      }
  }
};

// `i` goes over results; a thread makes one, or a warp together where `team` is 32.
#define EACH_WINDOW(i, count) \
  for (long long i = first_of_grid() / team, last = (count); i < last; i += grid_step() / team)

template <class C> __device__ __forceinline__ bool above(C a, int a_at, C b, int b_at) {
  return b == b && (a > b || a != a || (a == b && a_at >= 0 && (b_at < 0 || a_at < b_at)));
}

template <class T>
__global__ void largest(const T* x, T* out, int* where, WINDOWS, long long inner, double low, int flags, int team,
                        long long count) {
  typedef wide_t<T> C;
  ALL_AXES
  EACH_WINDOW(i, count) {
    long long at = i;
    const long long j = last_of(at, inner);
    const int ow = last_of(at, w.out), oh = last_of(at, h.out), od = last_of(at, d.out);
    const T* plane = x + at * d.size * h.size * w.size * inner + j;
    const bool lowest = flags & ALWAYS || sticks_out(d, od) || sticks_out(h, oh) || sticks_out(w, ow);
    C best = lowest ? C(low) : C(-INFINITY);
    int place = -1;
    const int lane = team == 1 ? 0 : threadIdx.x & 31;
    for (window_elements e(window_of(d, od), window_of(h, oh), window_of(w, ow), lane); e.inside(); e.on(team)) {
      const int here = (e.z * h.size + e.y) * w.size + e.x;
      const C element = up<T>(plane[here * inner]);
      if (flags & STRICT ? element > best : above(element, here, best, place)) {
        best = element;
        place = here;
      }
    }
    for (int lanes = 16; team == 32 && lanes; lanes >>= 1) {
      const C other = across(best, lanes);
      const int there = across(place, lanes);
      if (above(other, there, best, place)) {
        best = other;
        place = there;
      }
    }
    if (lane == 0 && flags & OUT) out[i] = down<T>(best);
    if (lane == 0 && flags & WHERE) where[i] = place;
  }
}

template <class T>
__global__ void mean(const T* x, T* out, WINDOWS, long long inner, int flags, int team, long long count) {
  ALL_AXES
  EACH_WINDOW(i, count) {
    long long at = i;
    const long long j = last_of(at, inner);
    const int ow = last_of(at, w.out), oh = last_of(at, h.out), od = last_of(at, d.out);
    const T* plane = x + at * d.size * h.size * w.size * inner + j;
    wide_t<T> total = 0;
    const int lane = team == 1 ? 0 : threadIdx.x & 31;
    for (window_elements e(window_of(d, od), window_of(h, oh), window_of(w, ow), lane); e.inside(); e.on(team))
      total += up<T>(plane[((e.z * (long long)h.size + e.y) * w.size + e.x) * inner]);
    if (team == 32) total = over_warp<join::sum>(total);
    const long long n = (long long)counted(d, od, flags) * counted(h, oh, flags) * counted(w, ow, flags);
    if (lane == 0) out[i] = down<T>(total / wide_t<T>(n));
  }
}

// The gradient of element `at` as the sum over its windows; WORTH is what one of them gives.
#define GATHER(WORTH)                                                                                      \
  EACH(i, 0, count) {                                                                                      \
    long long at = i;                                                                                      \
    const long long j = last_of(at, inner);                                                                \
    const int x = last_of(at, w.size), y = last_of(at, h.size), z = last_of(at, d.size);                   \
    const span zs = windows_with(d, z), ys = windows_with(h, y), xs = windows_with(w, x);                  \
    wide_t<T> total = flags & ADD ? up<T>(dx[i]) : wide_t<T>(0);                                           \
    for (int od = zs.from; od < zs.to; ++od)                                                               \
      for (int oh = ys.from; oh < ys.to; ++oh)                                                             \
        for (int ow = xs.from; ow < xs.to; ++ow) {                                                         \
          const long long o = (((at * d.out + od) * h.out + oh) * w.out + ow) * inner + j;                 \
          WORTH                                                                                            \
        }                                                                                                  \
    dx[i] = down<T>(total);                                                                                \
  }

template <class T>
__global__ void largest_grad(const T* g, const int* where, T* dx, WINDOWS, long long inner, int flags, long long count) {
  ALL_AXES
  GATHER(if (where[o] == (z * h.size + y) * w.size + x) total += up<T>(g[o]);)
}

// For each window the element of y where `largest` found that of x; 0 for a window without elements.
template <class T>
__global__ void taken(const T* y, const int* where, T* out, long long windows, long long size, long long inner,
                      long long count) {
  EACH(i, 0, count) {
    const int at = where[i];
    if (at >= size) __trap();
    out[i] = at < 0 ? down<T>(wide_t<T>(0)) : y[(i / (windows * inner) * size + at) * inner + i % inner];
  }
}

// A share is a part of one in float whatever T is, as in Paddle.
template <class T>
__global__ void mean_grad(const T* g, T* dx, WINDOWS, long long inner, int flags, long long count) {
  ALL_AXES
  GATHER(const long long n = (long long)counted(d, od, flags) * counted(h, oh, flags) * counted(w, ow, flags);
         total += up<T>(g[o]) * wide_t<T>(1.f / float(n));)
}
