// The windows of images as columns, and columns added up where they came from.
//
// columns[image, channel and element of the window, place] = the element of the image, 0 beside it; images and rows of
// columns have any stride. Making columns reads an element of the image as often as windows see it, mostly from
// caches, and writes each column once; the gradient reads each column once and gathers, so that an element is added up
// in the same order every time. Both aim at the bandwidth of a device copy.
#include "sliding_windows.cuh"

template <class W>
__global__ void columns(const void* images, void* to, WINDOWS, long long channels, long long image_step,
                        long long row_step, long long count) {
  ALL_AXES
  EACH(i, 0, count) {
    long long at = i;
    const int x = last_of(at, w.out), y = last_of(at, h.out), z = last_of(at, d.out);
    const W* plane = static_cast<const W*>(images) + at * d.size * h.size * w.size;
    const long long channel = last_of(at, channels), place = (z * (long long)h.out + y) * w.out + x;
    W* column = static_cast<W*>(to) + at * image_step + channel * d.window * h.window * w.window * row_step + place;
    const int z0 = z * d.stride - d.low, y0 = y * h.stride - h.low, x0 = x * w.stride - w.low;
    for (int a = 0; a < d.window; ++a)
      for (int b = 0; b < h.window; ++b) {
        const int zz = z0 + a * d.dilation, yy = y0 + b * h.dilation;
        const bool row_inside = inside(d, zz) && inside(h, yy);
        const W* row = plane + (zz * (long long)h.size + yy) * w.size;
        for (int c = 0; c < w.window; ++c, column += row_step) {
          const int xx = x0 + c * w.dilation;
          *column = row_inside && inside(w, xx) ? row[xx] : W(0);
        }
      }
  }
}

template <class S, class T>
__global__ void images(const S* columns, T* to, WINDOWS, long long count) {
  ALL_AXES
  const long long step = (long long)d.out * h.out * w.out;
  EACH(i, 0, count) {
    long long at = i;
    const int x = last_of(at, w.size), y = last_of(at, h.size), z = last_of(at, d.size);
    const S* column = columns + at * d.window * h.window * w.window * step;
    wide_t<T> total = 0;
    for (int a = 0; a < d.window; ++a)
      for (int b = 0; b < h.window; ++b) {
        const int zz = window_at(d, z, a), yy = window_at(h, y, b);
        if (zz < 0 || yy < 0) {
          column += w.window * step;
          continue;
        }
        for (int c = 0; c < w.window; ++c, column += step) {
          const int xx = window_at(w, x, c);
          if (xx >= 0) total += up<S>(column[(zz * (long long)h.out + yy) * w.out + xx]);
        }
      }
    to[i] = down<T>(total);
  }
}
