// Steps whose length follows the sizes of whole tensors: lamb, lars_momentum and dpsgd.
//
// Two passes, for the length is known only when all elements have been seen. lamb moves 7 elements for each of the
// parameter in the first one (moments updated, direction written, squares of parameter and direction summed) and 3 in
// the second; lars_momentum 2 and 5; dpsgd 1 and 3. All aim at the bandwidth of a device copy. The direction is kept as wide_t<T>.
// A block leaves its two sums at partial[block] and partial[blocks + block]; each block of the second pass adds all of
// them up in the same order. An output may be its input's memory, so no pointer is __restrict__.
#include "reduce.cuh"

template <class C> __device__ __forceinline__ void leave(C one, C two, C* partial) {
  one = over_block<join::sum>(one);
  two = over_block<join::sum>(two);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = one;
    partial[gridDim.x + blockIdx.x] = two;
  }
}
// The size of a tensor, from the sums of its squares.
template <class C> __device__ __forceinline__ C size_of(const C* partial, int blocks) {
  C total = 0;
  for (int i = threadIdx.x; i < blocks; i += blockDim.x) total += partial[i];
  return sqrt(over_block<join::sum>(total));
}

// ---- lamb

template <class T>
__global__ void lamb_moments(const T* p, const T* g, const T* m, const T* v, const wide_t<T>* pow1, const wide_t<T>* pow2,
                             T* m_out, T* v_out, wide_t<T>* direction, wide_t<T>* partial, double beta1, double beta2,
                             double epsilon, double decay, long long n) {
  typedef wide_t<T> C;
  const C left1 = C(1) - *pow1, left2 = C(1) - *pow2, b1 = C(beta1), b2 = C(beta2);
  C whole = 0, way = 0;
  EACH(i, 0, n) {
    C x = up<T>(p[i]), y = up<T>(g[i]);
    C mean = up<T>(m[i]) * b1 + y * (C(1) - b1), square = up<T>(v[i]) * b2 + y * y * (C(1) - b2);
    C r = mean / left1 / (sqrt(square / left2) + C(epsilon)) + x * C(decay);
    whole += x * x;
    way += r * r;
    m_out[i] = down<T>(mean);
    v_out[i] = down<T>(square);
    direction[i] = r;
  }
  leave(whole, way, partial);
}

template <class T>
__global__ void lamb_step(const T* p, const wide_t<T>* direction, const wide_t<T>* rate, const wide_t<T>* partial, T* p_out,
                          int blocks, long long n) {
  typedef wide_t<T> C;
  C whole = size_of(partial, blocks), way = size_of(partial + blocks, blocks);
  C step = (whole > C(0) && way > C(0) ? whole / way : C(1)) * *rate;
  EACH(i, 0, n) p_out[i] = down<T>(up<T>(p[i]) - direction[i] * step);
}

// ---- lars_momentum

template <class T>
__global__ void lars_sizes(const T* p, const T* g, wide_t<T>* partial, double factor, long long n) {
  typedef wide_t<T> C;
  C whole = 0, slope = 0;
  EACH(i, 0, n) {
    C x = up<T>(p[i]), y = up<T>(g[i]) * C(factor);
    whole += x * x;
    slope += y * y;
  }
  leave(whole, slope, partial);
}

template <class T>
__global__ void lars_step(const T* p, const T* g, const T* velocity, const wide_t<T>* rate, const wide_t<T>* partial,
                          T* p_out, T* velocity_out, int blocks, double factor, double mu, double coeff, double decay,
                          double epsilon, long long n) {
  typedef wide_t<T> C;
  C whole = size_of(partial, blocks), slope = size_of(partial + blocks, blocks), step = *rate;
  if (decay > 0 && whole > C(0) && slope > C(0)) step = step * C(coeff) * whole / (slope + C(decay) * whole + C(epsilon));
  EACH(i, 0, n) {
    C x = up<T>(p[i]);
    C fresh = up<T>(velocity[i]) * C(mu) + (x * C(decay) + up<T>(g[i]) * C(factor)) * step;
    velocity_out[i] = down<T>(fresh);
    p_out[i] = down<T>(x - fresh);
  }
}

// ---- dpsgd, whose gradient's size is what lars_sizes finds

template <class T>
__global__ void dpsgd_step(const T* p, const T* g, const wide_t<T>* rate, const wide_t<T>* partial, T* p_out, int blocks,
                           double clip, double noise, long long n) {
  typedef wide_t<T> C;
  C scale = size_of(partial, blocks) / C(clip), step = *rate;
  scale = scale < C(1) ? C(1) : scale;  // NaN stays
  EACH(i, 0, n) p_out[i] = down<T>(up<T>(p[i]) - step * (up<T>(g[i]) / scale + C(noise)));
}
