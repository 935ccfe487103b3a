// tril_triu: a triangle of each matrix, zeros elsewhere.
//
// Reads the elements of the triangle and writes all: bound by the bandwidth of a device copy. W is a word that holds an
// element; a thread's row is computed once.
#include "row_grid.cuh"

template <class W>
__global__ void triangle(const void* from, void* to, long long height, long long width, long long diagonal, int lower,
                         long long rows) {
  const W* x = static_cast<const W*>(from);
  W* out = static_cast<W*>(to);
  EACH_ROW(r, rows) {
    long long on = r % height + diagonal;  // the column in which the diagonal meets the row
    ALONG(j, width) out[r * width + j] = (lower ? j <= on : j >= on) ? x[r * width + j] : W(0);
  }
}
