// norm: vectors along one axis made as long as 1, and the gradient.
//
// Forward moves 2 elements of memory for each of x, backward 3; a second pass over a line finds it in a cache. Both aim
// at the bandwidth of a device copy.
#include "reduce.cuh"

#define LINE_AT (line / inner * n * inner + line % inner)
#define OWN(k) EACH_MEMBER(k, line < lines ? n : 0, way)

template <class T>
__global__ void norm(const T* x, T* length, T* y, double epsilon, long long lines, long long n, long long inner,
                     int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    long long at = LINE_AT;
    C total = 0;
    OWN(k) {
      C v = up<T>(x[at + k * inner]);
      total += v * v;
    }
    C root = sqrt(over_line<join::sum>(total, way) + C(epsilon));
    OWN(k) y[at + k * inner] = down<T>(up<T>(x[at + k * inner]) / root);
    if (length && line < lines && member(way) == 0) length[line] = down<T>(root);
  }
}

template <class T>
__global__ void norm_grad(const T* x, const T* length, const T* g, T* dx, long long lines, long long n, long long inner,
                          int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    long long at = LINE_AT;
    C total = 0, root = line < lines ? up<T>(length[line]) : C(1);
    OWN(k) total += up<T>(x[at + k * inner]) * up<T>(g[at + k * inner]);
    total = over_line<join::sum>(total, way) / (root * root);
    OWN(k) {
      long long i = at + k * inner;
      dx[i] = down<T>((up<T>(g[i]) - up<T>(x[i]) * total) / root);
    }
  }
}
