// norm: vectors along one axis made as long as 1, and the gradient; clip_by_norm and moving_average_abs_max_scale.
//
// Forward moves 2 elements of memory for each of x, backward 3; a second pass over a line finds it in a cache. Both aim
// at the bandwidth of a device copy. The other two read the result of a fold, the first pass.
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

// The sum of the squares of a block's elements.
template <class T> __global__ void squares(const T* x, wide_t<T>* partial, long long n) {
  wide_t<T> total = 0;
  EACH(i, 0, n) total += up<T>(x[i]) * up<T>(x[i]);
  total = over_block<join::sum>(total);
  if (threadIdx.x == 0) partial[blockIdx.x] = total;
}

// x no longer than `longest`; the sums of its squares are known in parts. Out may be x.
template <class T>
__global__ void shrink(const T* x, const wide_t<T>* partial, T* out, int parts, double longest, long long n) {
  typedef wide_t<T> C;
  C length = 0;
  for (int i = threadIdx.x; i < parts; i += blockDim.x) length += partial[i];
  length = sqrt(over_block<join::sum>(length));
  C factor = length > C(longest) ? C(longest) / length : C(1);
  EACH(i, 0, n) out[i] = down<T>(up<T>(x[i]) * factor);
}

// The next average of the largest size of elements. What is written may be what is read.
template <class T>
__global__ void moving(const T* largest, const T* accum, const T* state, T* accum_out, T* state_out, T* average,
                       double rate) {
  T size = *largest < T(0) ? T(0) : *largest;  // of no elements
  T sum = T(rate) * *accum + size, count = T(rate) * *state + T(1);
  *accum_out = sum;
  *state_out = count;
  *average = sum / count;
}
