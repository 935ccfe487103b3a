// The largest and the smallest elements of lines, in order, and where they are: top_k, arg_max, arg_min.
//
// One read for an element of X and little else, so arg_max aims at the bandwidth of device memory. For top_k each
// thread remembers the best of its own elements; of those the line's best is found k times, and only the thread that
// had it looks through its own again, in the cache: made for a k far below the length of a line. Among equal elements
// the first one comes first, so the result does not depend on how threads run.
#include "reduce.cuh"

template <class C> struct spot { C value; long long at; };  // none where `at` is negative

template <class C> __device__ __forceinline__ spot<C> across(spot<C> x, int lanes) {
  spot<C> s = {across(x.value, lanes), across(x.at, lanes)};
  return s;
}

// An order of elements: the largest first or the smallest, numbers that are none before all others or after them.
template <bool LARGEST, bool NONE_FIRST> struct ranking {
  template <class S> static __device__ __forceinline__ S none() {
    S s;
    s.value = 0;
    s.at = -1;
    return s;
  }
  template <class S> static __device__ __forceinline__ bool ahead(S a, S b) {
    if (a.at < 0 || b.at < 0) return b.at < 0 && a.at >= 0;
    bool a_none = a.value != a.value, b_none = b.value != b.value;
    if (a_none != b_none) return a_none == NONE_FIRST;
    if (!a_none && a.value != b.value) return LARGEST ? a.value > b.value : a.value < b.value;
    return a.at < b.at;
  }
  template <class S> static __device__ __forceinline__ S both(S a, S b) { return ahead(b, a) ? b : a; }
};

// The first of a thread's own elements; with `last`, of those that come after it.
template <class F, class T>
__device__ __forceinline__ spot<wide_t<T>> first_of(const T* x, long long n, long long inner, int way,
                                                    spot<wide_t<T>> last) {
  typedef spot<wide_t<T>> S;
  S best = F::template none<S>();
  EACH_MEMBER(k, n, way) {
    S s = {up<T>(x[k * inner]), k};
    if (last.at < 0 || F::ahead(last, s)) best = F::both(best, s);
  }
  return best;
}

template <class T, class I, class F>
__global__ void find(const T* x, I* out, long long lines, long long n, long long inner, int way) {
  typedef spot<wide_t<T>> S;
  EACH_LINE(line, lines, way) {
    S best = F::template none<S>();
    if (line < lines) best = first_of<F>(x + line / inner * n * inner + line % inner, n, inner, way, best);
    best = over_line<F>(best, way);
    if (line < lines && member(way) == 0) out[line] = I(best.at);
  }
}

template <class T, class F>
__global__ void top(const T* x, T* out, long long* at, long long k, long long lines, long long n, long long inner,
                    int way) {
  typedef spot<wide_t<T>> S;
  EACH_LINE(line, lines, way) {
    bool real = line < lines;
    const T* own = x + line / inner * n * inner + line % inner;
    S mine = F::template none<S>();
    if (real) mine = first_of<F>(own, n, inner, way, mine);
    for (long long j = 0; j < k; ++j) {
      S best = over_line<F>(mine, way);
      if (!real) continue;
      if (member(way) == 0) {
        long long place = (line / inner * k + j) * inner + line % inner;
        if (out) out[place] = own[best.at * inner];
        if (at) at[place] = best.at;
      }
      if (mine.at == best.at && best.at >= 0) mine = first_of<F>(own, n, inner, way, best);
    }
  }
}
