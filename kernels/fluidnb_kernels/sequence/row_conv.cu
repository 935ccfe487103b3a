// row_conv and its gradients: each row together with those behind it, column by column.
//
// A thread makes an element from as many rows as the filter has; these are in the cache for the rows beside it, so one
// read and one write for an element come from memory. The filter's gradient reads both operands for each of its rows,
// from the cache where a column of both fits in it. Sums have a fixed order.
#include "reduce.cuh"
#include "row_grid.cuh"

// out[r] = Σ over k below counts[r] of x[r + k · step] · filter[k]
template <class T>
__global__ void row_conv(const T* x, const T* filter, const long long* counts, T* out, long long step, long long width,
                         long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    const long long n = counts[r];
    ALONG(j, width) {
      C total = 0;
      for (long long k = 0; k < n; ++k) total += up<T>(x[(r + k * step) * width + j]) * up<T>(filter[k * width + j]);
      out[r * width + j] = down<T>(total);
    }
  }
}

// dfilter[k] = Σ over the rows r whose count is above k of x[r + k] · g[r]
template <class T>
__global__ void row_conv_filter(const T* x, const T* g, const long long* counts, T* dfilter, long long lines,
                                long long n, long long width, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    const long long k = line / width, j = line - k * width;
    C total = 0;
    EACH_MEMBER(r, line < lines ? n : 0, way)
      if (counts[r] > k) total += up<T>(x[(r + k) * width + j]) * up<T>(g[r * width + j]);
    total = over_line<join::sum>(total, way);
    if (line < lines && member(way) == 0) dfilter[line] = down<T>(total);
  }
}
