// Boxes around every place of a feature map. Nothing is read but a table of shapes: writing Boxes and Variances bounds it.
//
// Row r is a place; along it are the boxes of a table of (move across, move down, half a width, half a height), in
// pixels. A thread writes one side of a box and what goes with it. Numbers are computed in double and rounded once, as
// the host does.
#include "row_grid.cuh"

template <class T>
__global__ void priors(const double* shapes, T* boxes, T* variances, double v0, double v1, double v2, double v3,
                       double step_x, double step_y, double first_x, double first_y, double width, double height,
                       int clip, long long across, long long count, long long rows) {
  EACH_ROW(r, rows) {
    const long long row = r / across;
    const double x = first_x + (r - row * across) * step_x, y = first_y + row * step_y;
    ALONG(e, 4 * count) {
      const int k = int(e & 3), upright = k & 1;
      const double* shape = shapes + (e & ~3LL) + upright;
      const double half = k < 2 ? -shape[2] : shape[2];
      double side = ((upright ? y : x) + shape[0] + half) / (upright ? height : width);
      if (clip) side = side < 0 ? 0 : side > 1 ? 1 : side;
      if (boxes) boxes[r * 4 * count + e] = down<T>(wide_t<T>(side));
      if (variances) variances[r * 4 * count + e] = down<T>(wide_t<T>(k == 0 ? v0 : k == 1 ? v1 : k == 2 ? v2 : v3));
    }
  }
}
