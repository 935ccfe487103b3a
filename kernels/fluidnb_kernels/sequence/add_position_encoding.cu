// add_position_encoding and its gradient, a multiple of dOut.
//
// One read and one write for an element; the sines of a place are read from a table that stays in the cache. Bound by
// the bandwidth of a device copy.
#include "row_grid.cuh"

// out[r] = alpha · x[r] + waves[places[r]]
template <class T>
__global__ void encoded(const T* x, const wide_t<T>* waves, const long long* places, T* out, double alpha,
                        long long width, long long rows) {
  EACH_ROW(r, rows) {
    const long long at = waves ? places[r] : 0;
    ALONG(j, width) {
      const wide_t<T> scaled = wide_t<T>(alpha) * up<T>(x[r * width + j]);
      out[r * width + j] = down<T>(waves ? scaled + waves[at * width + j] : scaled);
    }
  }
}
