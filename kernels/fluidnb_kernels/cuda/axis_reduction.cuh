// Folding lines of a tensor into one element each.
//
// fold reads every element once and writes one of a line: it aims at the bandwidth of reading. A line that is long
// where lines are few is folded in pieces of `n` elements, and those are folded again.
#pragma once
#include "reduce.cuh"

// A fold: the value of an element x (and y beside it), how two of these are joined, and what the joined ones give. a
// is the operator's number.
#define FOLD_OF(name, two_of_them, joined, of_x, of_total)                                        \
  struct name {                                                                                   \
    typedef join::joined with;                                                                    \
    static constexpr bool two = two_of_them;                                                      \
    template <class C> static __device__ __forceinline__ C of(C x, C y, C a) { return of_x; }     \
    template <class C> static __device__ __forceinline__ C give(C t, C a) { return of_total; }    \
  };
#define FOLD(name, joined, of_x, of_total) FOLD_OF(name, false, joined, of_x, of_total)
#define FOLD_TWO(name, joined, of_x_y, of_total) FOLD_OF(name, true, joined, of_x_y, of_total)

// Pieces of n elements out of lines of `whole`.
template <class F, class T, class U>
__global__ void fold(const T* x, const T* y, U* out, double a, long long whole, long long lines, long long n,
                     long long inner, int way) {
  typedef wide_t<T> C;
  typedef decltype(F::of(C(), C(), C())) S;
  long long pieces = (whole + n - 1) / (n ? n : 1);
  EACH_LINE(line, lines, way) {
    S s = F::with::template none<S>();
    if (line < lines) {
      long long piece = line / inner, from = pieces > 1 ? piece % pieces * n : 0;
      long long at = (pieces > 1 ? piece / pieces : piece) * whole * inner + from * inner + line % inner;
      long long size = whole - from < n ? whole - from : n;
#pragma unroll 16  // with 4 an H100 read at 80 % of a copy's speed, with 16 at 86 %
      EACH_MEMBER(k, size, way) {
        long long i = at + k * inner;
        s = F::with::both(s, F::of(up<T>(x[i]), F::two ? up<T>(y[i]) : C(0), C(a)));
      }
    }
    s = over_line<typename F::with>(s, way);
    if (line < lines && member(way) == 0) out[line] = down<U>(F::give(s, C(a)));
  }
}
