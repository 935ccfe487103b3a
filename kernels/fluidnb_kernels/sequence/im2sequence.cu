// im2sequence: the windows of images [n, channels, height, width] as rows, and their gradients back where they belong.
//
// A thread makes an element of a row; `corners` says for each row its image and where its window begins. Forward reads
// an element of an image for each element of a row, mostly from caches, and writes rows in order: the bound is the
// bandwidth of a device copy. Backward gathers: an element of an image adds up the rows of the windows it is in, always
// in the same order; `sizes` says for each image its first row, and how many windows it has down and across.
#include "sliding_windows.cuh"
#include "row_grid.cuh"

template <class W>
__global__ void windows_as_rows(const void* from, const int* corners, void* to, AXIS(h), AXIS(w), long long channels,
                                long long rows) {
  ONE_AXIS(h)
  ONE_AXIS(w)
  const long long width = channels * h.window * w.window;
  EACH_ROW(r, rows) {
    const int top = corners[3 * r + 1], left = corners[3 * r + 2];
    const W* image = static_cast<const W*>(from) + corners[3 * r] * channels * h.size * w.size;
    ALONG(j, width) {
      long long c = j;
      const int x = left + last_of(c, w.window), y = top + last_of(c, h.window);
      static_cast<W*>(to)[r * width + j] =
          inside(h, y) && inside(w, x) ? image[(c * h.size + y) * w.size + x] : W(0);
    }
  }
}

template <class T>
__global__ void rows_as_windows(const T* g, const long long* sizes, T* dx, AXIS(h), AXIS(w), long long channels,
                                long long count) {
  EACH(i, 0, count) {
    ONE_AXIS(h)
    ONE_AXIS(w)
    long long at = i;
    const int x = last_of(at, w.size), y = last_of(at, h.size), c = last_of(at, channels);
    const long long* size = sizes + 3 * at;
    axis hs = h, ws = w;  // with the windows of this image
    hs.out = size[1];
    ws.out = size[2];
    wide_t<T> total = 0;
    for (int a = 0; a < h.window; ++a)
      for (int b = 0; b < w.window; ++b) {
        const int yy = window_at(hs, y, a), xx = window_at(ws, x, b);
        const long long row = size[0] + yy * size[2] + xx;
        if (yy >= 0 && xx >= 0) total += up<T>(g[((row * channels + c) * h.window + a) * w.window + b]);
      }
    dx[i] = down<T>(total);
  }
}
