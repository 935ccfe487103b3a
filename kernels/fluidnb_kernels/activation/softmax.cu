// softmax, log_softmax and the loss on top of softmax, with their gradients: lines along one axis, each by a team.
//
// Forward moves 2 elements of memory for each of x, one in and one out: the maximum and the sum of exponentials come
// from one pass, and the second pass over a line finds it in a cache. Backward moves 3, softmax's result, dOut and dX.
// Both aim at the bandwidth of a device copy. A difference to the maximum below LOWEST counts as LOWEST; in the sum that
// is less than its last digit. The maximum has to be finite: an infinite one gives NaN, as on the host.
#include "reduce.cuh"

template <class C> __device__ __forceinline__ C above(C x, C low) { return x < low ? low : x; }  // NaN stays
#define LOWEST C(-64)

// What a thread sums up of its line, and where that begins.
#define LINE_AT (line / inner * n * inner + line % inner)
#define OWN(k) EACH_MEMBER(k, line < lines ? n : 0, way)

template <class T>
__device__ __forceinline__ exponentials<wide_t<T>> over_exponentials(const T* x, long long n, long long inner, int way) {
  typedef join::exponentials_too F;
  exponentials<wide_t<T>> s = F::none<exponentials<wide_t<T>>>();
#pragma unroll 4
  EACH_MEMBER(k, n, way) s = F::both(s, exponential(up<T>(x[k * inner])));
  s = over_line<F>(s, way);
  s.total += s.top - s.top;
  return s;
}

template <class T> __global__ void softmax(const T* x, T* y, long long lines, long long n, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    long long at = LINE_AT;
    exponentials<C> s = over_exponentials(x + at, line < lines ? n : 0, inner, way);
    OWN(k) {
      long long i = at + k * inner;
      y[i] = down<T>(exp(above(up<T>(x[i]) - s.top, LOWEST)) / s.total);
    }
  }
}

template <class T>
__global__ void softmax_grad(const T* y, const T* g, T* dx, long long lines, long long n, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    long long at = LINE_AT;
    C total = 0;
    OWN(k) total += up<T>(y[at + k * inner]) * up<T>(g[at + k * inner]);
    total = over_line<join::sum>(total, way);
    OWN(k) {
      long long i = at + k * inner;
      dx[i] = down<T>((up<T>(g[i]) - total) * up<T>(y[i]));
    }
  }
}

template <class T>
__global__ void log_softmax(const T* x, T* y, long long lines, long long n, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    long long at = LINE_AT;
    exponentials<C> s = over_exponentials(x + at, line < lines ? n : 0, inner, way);
    C level = log(s.total);
    OWN(k) {
      long long i = at + k * inner;
      y[i] = down<T>(up<T>(x[i]) - s.top - level);
    }
  }
}

template <class T>
__global__ void log_softmax_grad(const T* y, const T* g, T* dx, long long lines, long long n, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    long long at = LINE_AT;
    C total = 0;
    OWN(k) total += up<T>(g[at + k * inner]);
    total = over_line<join::sum>(total, way);
    OWN(k) {
      long long i = at + k * inner;
      dx[i] = down<T>(up<T>(g[i]) - exp(up<T>(y[i])) * total);
    }
  }
}

// ---- softmax_with_cross_entropy: p is null where the probabilities are not requested

// Labels are class numbers. A line whose label is `ignore` counts nothing; a label that is no class makes its loss NaN,
// because a kernel cannot raise.
template <class T>
__global__ void hard_loss(const T* x, const long long* labels, T* p, T* loss, long long ignore, long long lines,
                          long long n, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    long long at = LINE_AT;
    exponentials<C> s = over_exponentials(x + at, line < lines ? n : 0, inner, way);
    if (p) OWN(k) {
      long long i = at + k * inner;
      p[i] = down<T>(exp(above(up<T>(x[i]) - s.top, LOWEST)) / s.total);
    }
    if (line < lines && member(way) == 0) {
      long long label = labels[line];
      C counts = label != ignore ? C(1) : C(0), value = NAN;
      if (label == ignore) label = 0;
      if (label >= 0 && label < n)
        value = log(s.total) * counts - above(up<T>(x[at + label * inner]) - s.top, LOWEST) * counts;
      loss[line] = down<T>(value);
    }
  }
}

template <class T>
__global__ void soft_loss(const T* x, const T* labels, T* p, T* loss, long long lines, long long n, long long inner,
                          int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    long long at = LINE_AT;
    exponentials<C> s = over_exponentials(x + at, line < lines ? n : 0, inner, way);
    C level = log(s.total), total = 0;
    OWN(k) {
      long long i = at + k * inner;
      C below = above(up<T>(x[i]) - s.top, LOWEST);
      if (p) p[i] = down<T>(exp(below) / s.total);
      total += (level - below) * up<T>(labels[i]);
    }
    total = over_line<join::sum>(total, way);
    if (line < lines && member(way) == 0) loss[line] = down<T>(total);
  }
}

template <class T>
__global__ void hard_loss_grad(const T* p, const long long* labels, const T* g, T* dx, long long ignore, long long lines,
                               long long n, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) if (line < lines) {
    long long at = LINE_AT, label = labels[line];
    bool known = label >= 0 && label < n;
    C share = label == ignore ? C(0) : known ? C(1) : C(NAN), slope = up<T>(g[line]);
    OWN(k) {
      long long i = at + k * inner;
      dx[i] = down<T>((up<T>(p[i]) - (k == label ? C(1) : C(0))) * share * slope);
    }
  }
}

template <class T>
__global__ void soft_loss_grad(const T* p, const T* labels, const T* g, T* dx, long long lines, long long n,
                               long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) if (line < lines) {
    long long at = LINE_AT;
    C slope = up<T>(g[line]);
    OWN(k) {
      long long i = at + k * inner;
      dx[i] = down<T>((up<T>(p[i]) - up<T>(labels[i])) * slope);
    }
  }
}
