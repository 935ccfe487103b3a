// sequence_pool with MAX, and what its gradients give back to the rows of a sequence; sums are in row_maps.cu.
//
// `highest` reads each element once and writes a maximum and a row of 4 bytes for a sequence: bound by reading. The
// gradients write each element once and read those of the sequences, which are mostly in a cache: bound by writing.
#include "row_maps.cu"

template <class C> struct peak { C value; long long row; };  // none where `row` is negative

template <class C> __device__ __forceinline__ peak<C> across(peak<C> x, int lanes) {
  peak<C> p = {across(x.value, lanes), across(x.row, lanes)};
  return p;
}

namespace join {
struct first_highest {  // of several equal ones the first; a number that is none stays
  template <class S> static __device__ __forceinline__ S none() {
    S s;
    s.value = 0;
    s.row = -1;
    return s;
  }
  template <class S> static __device__ __forceinline__ S both(S a, S b) {
    if (a.row < 0 || b.row < 0) return a.row < 0 ? b : a;
    const bool a_none = a.value != a.value, b_none = b.value != b.value;
    if (a_none != b_none) return a_none ? a : b;
    if (!a_none && a.value != b.value) return a.value > b.value ? a : b;
    return a.row < b.row ? a : b;
  }
};
}  // namespace join

template <class T>
__global__ void highest(const T* x, const long long* starts, T* out, int* index, double empty, long long width,
                        long long lines, int way) {
  typedef wide_t<T> C;
  typedef join::first_highest F;
  EACH_LINE(line, lines, way) {
    const long long i = line < lines ? line / width : 0, j = line - i * width;
    const long long from = starts[i], to = line < lines ? starts[i + 1] : from;
    peak<C> top = F::none<peak<C>>();
    EACH_MEMBER(k, to - from, way) {
      const peak<C> p = {up<T>(x[(from + k) * width + j]), from + k};
      top = F::both(top, p);
    }
    top = over_line<F>(top, way);
    if (line < lines && member(way) == 0) {
      out[line] = down<T>(top.row < 0 ? C(empty) : top.value);
      if (index) index[line] = int(top.row);
    }
  }
}

// dx[r] = the gradient of its sequence, over n or over its root
template <class T>
__global__ void shares(const T* g, const long long* owners, const long long* starts, T* dx, int by, long long width,
                       long long rows) {
  EACH_ROW(r, rows) {
    const long long i = owners[r], n = starts[i + 1] - starts[i];
    ALONG(j, width) dx[r * width + j] = down<T>(over_count(up<T>(g[i * width + j]), n, by));
  }
}

// dx[r] = the gradient of its sequence where its element was the highest one, else 0
template <class T>
__global__ void returned(const T* g, const int* index, const long long* owners, T* dx, long long width,
                         long long rows) {
  EACH_ROW(r, rows) {
    const long long i = owners[r] * width;
    ALONG(j, width) dx[r * width + j] = index[i + j] == r ? g[i + j] : down<T>(0);
  }
}
