// lrn: each element of an image against the squares of the channels around it, and the gradient.
//
// Forward moves one element in and two out, the gradient four in and one out; the channels around come from caches. The
// power of each element is some 20 operations. Both aim at the bandwidth of a device copy. A channel's elements lie
// side by side in runs of `inner`.
#include "fluid.cuh"

// d goes over the channels from `before` channel c to `behind` it.
#define AROUND(d, c)                                                                                        \
  for (long long d = c < before ? -c : -before, last = channels - 1 - c < behind ? channels - 1 - c : behind; \
       d <= last; ++d)

template <class T>
__global__ void lrn(const T* x, T* middle, T* out, long long before, long long behind, double k, double alpha,
                    double beta, long long channels, long long inner, long long count) {
  typedef wide_t<T> C;
  EACH(i, 0, count) {
    long long c = i / inner % channels;
    C total = 0;
    AROUND(d, c) {
      C v = up<T>(x[i + d * inner]);
      total += v * v;
    }
    C mid = total * C(alpha) + C(k);
    if (middle) middle[i] = down<T>(mid);
    out[i] = down<T>(up<T>(x[i]) * pow(mid, C(-beta)));
  }
}

template <class T>
__global__ void lrn_grad(const T* x, const T* out, const T* middle, const T* g, T* dx, long long before,
                         long long behind, double alpha, double beta, long long channels, long long inner,
                         long long count) {
  typedef wide_t<T> C;
  EACH(i, 0, count) {
    long long c = i / inner % channels;
    C total = 0;
    AROUND(d, c) {
      long long j = i + d * inner;
      total += up<T>(g[j]) * up<T>(out[j]) / up<T>(middle[j]);
    }
    C own = up<T>(g[i]) * pow(up<T>(middle[i]), C(-beta));
    dx[i] = down<T>(own - total * up<T>(x[i]) * C(2 * alpha * beta));
  }
}
