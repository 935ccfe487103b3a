// Normalisation: batch_norm over channels, layer_norm, group_norm and instance_norm over rows, with their gradients.
//
// Moments are taken in one pass by Welford's method, in float or double, and joined in a tree of fixed shape. batch_norm
// moves 3 elements for each of x: read for the moments, read again and written; its gradient 5, and those of the others
// 3 + 2, where dX reads x and dY again from caches when a row fits there. layer_norm, group_norm and instance_norm
// read x once from memory and once from caches, and write once. All aim at the bandwidth of a device copy.
//
// Vectors over channels, and moments, come as wide_t<T>. Outputs are not in place of inputs.
#include "reduce.cuh"

// ---- moments: how many numbers, their mean, the sum of squares of what they differ from it

template <class C> struct moments { C n, mean, m2; };
template <class C> __device__ __forceinline__ moments<C> across(moments<C> x, int lanes) {
  moments<C> s = {across(x.n, lanes), across(x.mean, lanes), across(x.m2, lanes)};
  return s;
}
template <class C> __device__ __forceinline__ void take(moments<C>& s, C x) {
  C d = x - s.mean;
  s.n += C(1);
  s.mean += d / s.n;
  s.m2 += d * (x - s.mean);
}
namespace join {
struct moments_too {
  template <class S> static __device__ __forceinline__ S none() {
    S s = {0, 0, 0};
    return s;
  }
  // the smaller mean comes first, so that both threads of a pair round alike
  template <class S> static __device__ __forceinline__ S both(S a, S b) {
    if (a.n == 0) return b;
    if (b.n == 0) return a;
    S low = b.mean < a.mean ? b : a, high = b.mean < a.mean ? a : b, s;
    s.n = a.n + b.n;
    auto d = high.mean - low.mean, share = high.n / s.n;
    s.mean = low.mean + d * share;
    s.m2 = a.m2 + b.m2 + d * d * low.n * share;
    return s;
  }
};
}  // namespace join

template <class C> __device__ __forceinline__ C variance_of(moments<C> s) { return s.n > C(0) ? s.m2 / s.n : C(0); }

enum { SCALE = 1, BIAS = 2, LAST = 4, INVERSE = 8, FIXED = 16 };  // flags, as Python numbers them

// ---- x as [rows, channels, inner]: a line is a channel, cut into gridDim.y parts

struct channel_elements {
  long long k, to, step, row, s, rows_step, s_step, at_row, inner, first;
  __device__ __forceinline__ channel_elements(long long c, long long rows, long long channels, long long inner_, int way) {
    inner = inner_;
    at_row = channels * inner;
    first = c * inner;
    long long total = rows * inner, part = (total + gridDim.y - 1) / gridDim.y;
    k = blockIdx.y * part + member(way);
    to = c < channels ? (blockIdx.y + 1) * part : 0;
    if (to > total) to = total;
    step = members(way);
    row = k / inner;
    s = k - row * inner;
    rows_step = step / inner;
    s_step = step - rows_step * inner;
  }
  __device__ __forceinline__ bool more() const { return k < to; }
  __device__ __forceinline__ long long at() const { return row * at_row + first + s; }
  __device__ __forceinline__ void next() {
    k += step;
    row += rows_step;
    s += s_step;
    if (s >= inner) {
      s -= inner;
      ++row;
    }
  }
};

// The next elements of a channel: all are requested before the first is waited for.
const int AHEAD = 4;
struct next_elements {
  long long at[AHEAD], row[AHEAD];
  bool there[AHEAD];
  __device__ __forceinline__ next_elements(channel_elements& w) {
#pragma unroll
    for (int q = 0; q < AHEAD; ++q, w.next()) {
      there[q] = w.more();
      at[q] = w.at();
      row[q] = w.row;
    }
  }
  template <class T> __device__ __forceinline__ pack<wide_t<T>, AHEAD> of(const T* x) const {
    pack<wide_t<T>, AHEAD> v;
#pragma unroll
    for (int q = 0; q < AHEAD; ++q) v.at[q] = there[q] ? up<T>(x[at[q]]) : wide_t<T>(0);
    return v;
  }
};
// The body is made for each of them, q.
#define EACH_NEXT(e, q) _Pragma("unroll") for (int q = 0; q < AHEAD; ++q) if (e.there[q])

template <class T>
__global__ void channel_moments(const T* x, wide_t<T>* n, wide_t<T>* mean, wide_t<T>* m2, long long rows,
                                long long channels, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(c, channels, way) {
    moments<C> s = {0, 0, 0};
    for (channel_elements w(c, rows, channels, inner, way); w.more();) {
      const next_elements e(w);
      const pack<C, AHEAD> v = e.of(x);
      EACH_NEXT(e, q) take(s, v.at[q]);
    }
    s = over_line<join::moments_too>(s, way);
    if (c < channels && member(way) == 0) {
      long long at = blockIdx.y * channels + c;
      n[at] = s.n;
      mean[at] = s.mean;
      m2[at] = s.m2;
    }
  }
}

// The parts of each channel together; how much of the running moments stays comes with them.
template <class C>
__global__ void batch_moments(const C* n, const C* mean, const C* m2, const C* old_mean, const C* old_variance,
                              const C* stays, C* used, C* inverse, C* new_mean, C* new_variance, int parts, double epsilon,
                              long long channels) {
  EACH(c, 0, channels) {
    moments<C> s = {0, 0, 0};
    for (long long at = c; at < parts * channels; at += channels) {
      moments<C> part = {n[at], mean[at], m2[at]};
      s = join::moments_too::both(s, part);
    }
    C variance = variance_of(s), share = *stays;
    used[c] = s.mean;
    inverse[c] = C(1) / sqrt(variance + C(epsilon));
    new_mean[c] = old_mean[c] * share + s.mean * (C(1) - share);
    new_variance[c] = old_variance[c] * share + variance * (C(1) - share);
  }
}
template <class C>
__global__ void running_moments(const C* mean, const C* variance, C* used, C* inverse, C* new_mean, C* new_variance,
                                double epsilon, long long channels) {
  EACH(c, 0, channels) {
    C m = mean[c], v = variance[c];
    new_mean[c] = used[c] = m;
    new_variance[c] = v;
    inverse[c] = C(1) / sqrt(v + C(epsilon));
  }
}
template <class C> __global__ void number(C* out, double value) { *out = C(value); }

template <class T>
__global__ void channel_norm(const T* x, const wide_t<T>* mean, const wide_t<T>* inverse, const wide_t<T>* scale,
                             const wide_t<T>* bias, T* y, int flags, long long rows, long long channels, long long inner,
                             int way) {
  typedef wide_t<T> C;
  EACH_LINE(c, channels, way) {
    if (c >= channels) continue;
    C m = mean[c], factor = inverse[c] * (flags & SCALE ? scale[c] : C(1)), more = flags & BIAS ? bias[c] : C(0);
    for (channel_elements w(c, rows, channels, inner, way); w.more();) {
      const next_elements e(w);
      const pack<C, AHEAD> v = e.of(x);
      EACH_NEXT(e, q) y[e.at[q]] = down<T>((v.at[q] - m) * factor + more);
    }
  }
}

// The sums of dY · x̂ and of dY over each channel, in parts. The moments of an element are those at
// row / image · in_image + c / in_group.
template <class T>
__global__ void channel_sums(const T* x, const T* g, const wide_t<T>* mean, const wide_t<T>* inverse, wide_t<T>* products,
                             wide_t<T>* sums, long long image, long long in_image, long long in_group, long long rows,
                             long long channels, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(c, channels, way) {
    C product = 0, sum = 0;
    long long group = c / in_group;
    for (channel_elements w(c, rows, channels, inner, way); w.more();) {
      const next_elements e(w);
      const pack<C, AHEAD> v = e.of(x), slope = e.of(g);
      EACH_NEXT(e, q) {
        long long of = (image == 1 ? e.row[q] : e.row[q] / image) * in_image + group;
        product += slope.at[q] * ((v.at[q] - mean[of]) * inverse[of]);
        sum += slope.at[q];
      }
    }
    product = over_line<join::sum>(product, way);
    sum = over_line<join::sum>(sum, way);
    if (c < channels && member(way) == 0) {
      products[blockIdx.y * channels + c] = product;
      sums[blockIdx.y * channels + c] = sum;
    }
  }
}
template <class C>
__global__ void parts_together(const C* products, const C* sums, C* dscale, C* dbias, int parts, long long channels) {
  EACH(c, 0, channels) {
    C product = 0, sum = 0;
    for (long long at = c; at < parts * channels; at += channels) {
      product += products[at];
      sum += sums[at];
    }
    dscale[c] = product;
    dbias[c] = sum;
  }
}

template <class T>
__global__ void channel_grad(const T* x, const T* g, const wide_t<T>* mean, const wide_t<T>* inverse,
                             const wide_t<T>* scale, const wide_t<T>* dscale, const wide_t<T>* dbias, T* dx, int flags,
                             long long rows, long long channels, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(c, channels, way) {
    if (c >= channels) continue;
    C m = mean[c], s = inverse[c], factor = s * (flags & SCALE ? scale[c] : C(1)), share = C(1) / C(rows * inner);
    C bend = flags & FIXED ? C(0) : dscale[c] * share, shift = flags & FIXED ? C(0) : dbias[c] * share;
    for (channel_elements w(c, rows, channels, inner, way); w.more();) {
      const next_elements e(w);
      const pack<C, AHEAD> slope = e.of(g), v = flags & FIXED ? slope : e.of(x);
      EACH_NEXT(e, q) {
        C own = slope.at[q];
        if (!(flags & FIXED)) own = own - (v.at[q] - m) * s * bend - shift;
        dx[e.at[q]] = down<T>(own * factor);
      }
    }
  }
}

// ---- lines that are normalised by themselves: a row, or the channels of a group of an image, first or last

__device__ __forceinline__ long long quotient(long long a, long long b) {  // of numbers that are mostly short
  return (a | b) >> 32 ? a / b : static_cast<unsigned>(a) / static_cast<unsigned>(b);
}

// Where the elements of a line lie, and which channel is theirs. A group has `size` channels of `inner` elements.
struct line_map {
  long long start, first, size, inner, all;
  bool last;
  __device__ __forceinline__ line_map(long long line, long long n, long long groups, long long inner_, int flags) {
    last = flags & LAST;
    inner = inner_;
    size = n / inner;
    all = size * groups;
    first = line % groups * size;
    start = last ? line / groups * all * inner + first : line * n;
  }
  __device__ __forceinline__ long long at(long long k) const {
    return last ? start + quotient(k, size) * all + k - quotient(k, size) * size : start + k;
  }
  __device__ __forceinline__ long long channel(long long k) const {
    if (last) return first + k - quotient(k, size) * size;
    return first + (inner == 1 ? k : quotient(k, inner));
  }
};

template <class T>
__global__ void line_norm(const T* x, const wide_t<T>* scale, const wide_t<T>* bias, T* y, wide_t<T>* mean,
                          wide_t<T>* spread, int flags, double epsilon, long long lines, long long n, long long groups,
                          long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    const line_map map(line, n, groups, inner, flags);
    moments<C> s = {0, 0, 0};
    const long long count = line < lines ? n : 0;
    EACH_MEMBER(k, count, way) take(s, up<T>(x[map.at(k)]));
    s = over_line<join::moments_too>(s, way);
    C variance = variance_of(s), factor = C(1) / sqrt(variance + C(epsilon));
    EACH_MEMBER(k, count, way) {
      C v = (up<T>(x[map.at(k)]) - s.mean) * factor;
      if (flags & SCALE) v *= scale[map.channel(k)];
      if (flags & BIAS) v += bias[map.channel(k)];
      y[map.at(k)] = down<T>(v);
    }
    if (line < lines && member(way) == 0) {
      mean[line] = s.mean;
      spread[line] = flags & INVERSE ? factor : variance;
    }
  }
}

template <class C> __global__ void inverses(const C* variance, C* out, double epsilon, long long n) {
  EACH(i, 0, n) out[i] = C(1) / sqrt(variance[i] + C(epsilon));
}

template <class T>
__global__ void line_grad(const T* x, const T* g, const wide_t<T>* mean, const wide_t<T>* inverse, const wide_t<T>* scale,
                          T* dx, int flags, long long lines, long long n, long long groups, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    const line_map map(line, n, groups, inner, flags);
    const long long count = line < lines ? n : 0;
    C m = line < lines ? mean[line] : C(0), s = line < lines ? inverse[line] : C(0), shift = 0, bend = 0;
    EACH_MEMBER(k, count, way) {
      C slope = up<T>(g[map.at(k)]) * (flags & SCALE ? scale[map.channel(k)] : C(1));
      shift += slope;
      bend += slope * ((up<T>(x[map.at(k)]) - m) * s);
    }
    shift = over_line<join::sum>(shift, way) / C(n);
    bend = over_line<join::sum>(bend, way) / C(n);
    EACH_MEMBER(k, count, way) {
      C slope = up<T>(g[map.at(k)]) * (flags & SCALE ? scale[map.channel(k)] : C(1));
      dx[map.at(k)] = down<T>((slope - (up<T>(x[map.at(k)]) - m) * s * bend - shift) * s);
    }
  }
}
