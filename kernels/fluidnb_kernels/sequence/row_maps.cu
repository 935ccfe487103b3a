// Rows moved where a map says that was computed on the host, and rows of a tensor summed by such a map.
//
// Moving reads and writes each element once, and 8 bytes of the map for a row: bound by the bandwidth of a device copy.
// W is a word of 1 to 16 bytes, as many elements as rows allow. Sums gather: a thread adds what belongs to its element
// in the order of the map, so results do not depend on how threads run; they read each element once and write the sums.
#include "reduce.cuh"
#include "row_grid.cuh"

// out[r] = x[map[r]]; where map[r] is negative, row -1 - map[r] of `other`, whose elements are `along` apart, or zeros.
template <class W>
__global__ void gathered(const void* from, const void* other, long long along, const long long* map, void* to,
                         long long width, long long rows) {
  const W *x = static_cast<const W*>(from), *y = static_cast<const W*>(other);
  W* out = static_cast<W*>(to);
  EACH_ROW(r, rows) {
    const long long at = map[r];
    if (at >= 0) ALONG(j, width) out[r * width + j] = x[at * width + j];
    else if (y) ALONG(j, width) out[r * width + j] = y[(-1 - at) * width + j * along];
    else ALONG(j, width) out[r * width + j] = W{};
  }
}

// out[map[r]] = x[r]; no two rows have one place.
template <class W>
__global__ void placed(const void* from, const long long* map, void* to, long long width, long long rows) {
  const W* x = static_cast<const W*>(from);
  W* out = static_cast<W*>(to);
  EACH_ROW(r, rows) {
    const long long at = map[r];
    ALONG(j, width) out[at * width + j] = x[r * width + j];
  }
}

// ---- out[i] = the sum of x[order[k]], or of x[k], for k from starts[i] to starts[i + 1]; over n, or over its root

enum over { NOTHING, COUNT, ROOT };

template <class C> __device__ __forceinline__ C over_count(C total, long long n, int by) {
  return by == COUNT ? total / C(n) : by == ROOT ? total / sqrt(C(n)) : total;
}

// A thread takes an element: for sums of a few rows.
template <class T>
__global__ void summed(const T* x, const long long* starts, const long long* order, T* out, double empty, int by,
                       long long width, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    const long long from = starts[r], to = starts[r + 1];
    ALONG(j, width) {
      C total = 0;
      for (long long k = from; k < to; ++k) total += up<T>(x[(order ? order[k] : k) * width + j]);
      out[r * width + j] = down<T>(from == to ? C(empty) : over_count(total, to - from, by));
    }
  }
}

// Threads take an element together: for long sums.
template <class T>
__global__ void summed_together(const T* x, const long long* starts, const long long* order, T* out, double empty,
                                int by, long long width, long long lines, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    const long long i = line < lines ? line / width : 0, j = line - i * width, from = starts[i];
    const long long n = line < lines ? starts[i + 1] - from : 0;
    C total = 0;
    EACH_MEMBER(k, n, way) total += up<T>(x[(order ? order[from + k] : from + k) * width + j]);
    total = over_line<join::sum>(total, way);
    if (line < lines && member(way) == 0) out[line] = down<T>(n ? over_count(total, n, by) : C(empty));
  }
}
