// sequence_softmax and its gradient: a sequence of numbers is a line, and lines have different lengths.
//
// Forward moves 2 elements for each of X: the maximum and the sum of exponentials come from one pass, and the second
// pass finds the sequence in a cache. Backward moves 3. Both aim at the bandwidth of a device copy.
#include "reduce.cuh"

template <class T>
__global__ void sequence_softmax(const T* x, const long long* starts, T* y, long long lines, int way) {
  typedef wide_t<T> C;
  typedef join::exponentials_too F;
  EACH_LINE(line, lines, way) {
    const long long from = line < lines ? starts[line] : 0, n = line < lines ? starts[line + 1] - from : 0;
    exponentials<C> s = F::none<exponentials<C>>();
    EACH_MEMBER(k, n, way) s = F::both(s, exponential(up<T>(x[from + k])));
    s = over_line<F>(s, way);
    s.total += s.top - s.top;  // an infinite maximum gives no numbers
    EACH_MEMBER(k, n, way) y[from + k] = down<T>(exp(up<T>(x[from + k]) - s.top) / s.total);
  }
}

template <class T>
__global__ void sequence_softmax_grad(const T* y, const T* g, const long long* starts, T* dx, long long lines,
                                      int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    const long long from = line < lines ? starts[line] : 0, n = line < lines ? starts[line + 1] - from : 0;
    C total = 0;
    EACH_MEMBER(k, n, way) total += up<T>(y[from + k]) * up<T>(g[from + k]);
    total = over_line<join::sum>(total, way);
    EACH_MEMBER(k, n, way) dx[from + k] = down<T>((up<T>(g[from + k]) - total) * up<T>(y[from + k]));
  }
}
