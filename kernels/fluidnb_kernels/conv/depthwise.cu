// Convolutions in which each channel has filters of its own: Out[n, c · many + k] = X[n, c] · Filter[c · many + k].
//
// A thread makes one element of the result and reads its window, which its neighbours read too: from memory comes one
// read of X and one write of Out, and the bound is the bandwidth of a device copy as long as windows are small. A block
// makes one element of the gradient of a filter, in a tree of fixed shape. Half precision is added up in float.
#include "reduce.cuh"
#include "sliding_windows.cuh"

template <class T>
__global__ void apart(const T* x, const T* filter, T* out, WINDOWS, long long filters, long long many,
                      long long count) {
  ALL_AXES
  EACH(i, 0, count) {
    long long at = i;
    const int px = last_of(at, w.out), py = last_of(at, h.out), pz = last_of(at, d.out), f = last_of(at, filters);
    const T* plane = x + (at * (filters / many) + f / many) * d.size * h.size * w.size;
    const T* weight = filter + (long long)f * d.window * h.window * w.window;
    const int z0 = pz * d.stride - d.low, y0 = py * h.stride - h.low, x0 = px * w.stride - w.low;
    wide_t<T> total = 0;
    for (int a = 0; a < d.window; ++a)
      for (int b = 0; b < h.window; ++b) {
        const int zz = z0 + a * d.dilation, yy = y0 + b * h.dilation;
        const bool row_inside = inside(d, zz) && inside(h, yy);
        const T* row = plane + (zz * (long long)h.size + yy) * w.size;
        for (int c = 0; c < w.window; ++c, ++weight) {
          const int xx = x0 + c * w.dilation;
          if (row_inside && inside(w, xx)) total += up<T>(row[xx]) * up<T>(*weight);
        }
      }
    out[i] = down<T>(total);
  }
}

template <class T>
__global__ void apart_images(const T* g, const T* filter, T* dx, WINDOWS, long long filters, long long many,
                             long long count) {
  ALL_AXES
  EACH(i, 0, count) {
    long long at = i;
    const int px = last_of(at, w.size), py = last_of(at, h.size), pz = last_of(at, d.size);
    const long long channel = at % (filters / many);
    const T* plane = g + at * many * d.out * h.out * w.out;
    const T* weight = filter + channel * many * d.window * h.window * w.window;
    wide_t<T> total = 0;
    for (long long k = 0; k < many; ++k, plane += (long long)d.out * h.out * w.out)
      for (int a = 0; a < d.window; ++a)
        for (int b = 0; b < h.window; ++b) {
          const int zz = window_at(d, pz, a), yy = window_at(h, py, b);
          const bool row_inside = zz >= 0 && yy >= 0;
          const T* row = plane + (zz * (long long)h.out + yy) * w.out;
          for (int c = 0; c < w.window; ++c, ++weight) {
            const int xx = window_at(w, px, c);
            if (row_inside && xx >= 0) total += up<T>(row[xx]) * up<T>(*weight);
          }
        }
    dx[i] = down<T>(total);
  }
}

template <class T>
__global__ void apart_filter(const T* x, const T* g, T* dw, WINDOWS, long long filters, long long many,
                             long long images) {
  ALL_AXES
  long long at = blockIdx.x;
  const int c = last_of(at, w.window), b = last_of(at, h.window), a = last_of(at, d.window), f = at;
  wide_t<T> total = 0;
  for (long long k = threadIdx.x; k < images * d.out * h.out * w.out; k += blockDim.x) {
    at = k;
    const int px = last_of(at, w.out), py = last_of(at, h.out), pz = last_of(at, d.out);
    const int xx = px * w.stride - w.low + c * w.dilation, yy = py * h.stride - h.low + b * h.dilation;
    const int zz = pz * d.stride - d.low + a * d.dilation;
    if (!inside(w, xx) || !inside(h, yy) || !inside(d, zz)) continue;
    const T* from = x + (((at * (filters / many) + f / many) * d.size + zz) * h.size + yy) * w.size + xx;
    total += up<T>(*from) * up<T>(g[(((at * filters + f) * d.out + pz) * h.out + py) * w.out + px]);
  }
  total = over_block<join::sum>(total);
  if (threadIdx.x == 0) dw[blockIdx.x] = down<T>(total);
}
