// dropout and its gradient, with the very numbers that the host draws: word n of a stream is computed from n alone.
//
// A thread makes four words of 64 bits by Philox 4x64-10 (Salmon et al., 2011) and serves 8 elements with them, or 4
// of float64: 24 random bits are a float's, 53 a double's. Forward moves x in, Out and a byte of Mask out; the gradient
// two elements and a byte. The rounds are some 30 operations for each element, so that the forward of float32 is bound
// by memory and arithmetic alike.
#include "philox.cuh"

// What an element becomes; most often the divisor is 1.
template <class T> __device__ __forceinline__ T kept(T x, bool stays, wide_t<T> divisor) {
  const wide_t<T> value = up<T>(x) * wide_t<T>(stays);
  return down<T>(divisor == wide_t<T>(1) ? value : value / divisor);
}

// With N above 1 all that a block of words serves is loaded and stored in a few accesses, N elements each; the mask's
// bytes in one.
template <class T, int N>
__global__ void dropout(const T* x, T* out, unsigned char* mask, STREAM, double rate, double divisor, long long n) {
  typedef wide_t<T> C;
  constexpr int count = unit<C>::count;
  EACH(block, 0, (n + count - 1) / count) {
    const block_of_words words = WORDS(block);
    const long long first = block * count;
    if (N > 1 && first + count <= n) {
      pack<T, N> p[count / N];
      pack<unsigned char, count> stays;
#pragma unroll
      for (int j = 0; j < count / N; ++j) p[j] = load<T, N>(x, block * (count / N) + j);
#pragma unroll
      for (int i = 0; i < count; ++i) {
        stays.at[i] = unit<C>::at(words.at, i) >= C(rate);
        p[i / N].at[i % N] = kept(p[i / N].at[i % N], stays.at[i], C(divisor));
      }
#pragma unroll
      for (int j = 0; j < count / N; ++j) store<T, N>(out, block * (count / N) + j, p[j]);
      store<unsigned char, count>(mask, block, stays);
      continue;
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const long long at = first + i;
      if (at >= n) continue;
      mask[at] = unit<C>::at(words.at, i) >= C(rate);
      out[at] = kept(x[at], mask[at], C(divisor));
    }
  }
}

template <class T, int N>
__global__ void masked(const T* g, const unsigned char* mask, T* dx, double divisor, long long n) {
  EACH(i, 0, n / N) {
    pack<T, N> p = load<T, N>(g, i);
    const pack<unsigned char, N> stays = load<unsigned char, N>(mask, i);
#pragma unroll
    for (int j = 0; j < N; ++j) p.at[j] = kept(p.at[j], stays.at[j], wide_t<T>(divisor));
    store<T, N>(dx, i, p);
  }
  EACH(i, n / N * N, n) dx[i] = kept(g[i], mask[i], wide_t<T>(divisor));
}
template <class T, int N> __global__ void scaled(const T* x, T* y, double factor, long long n) {
  EACH(i, 0, n / N) {
    pack<T, N> p = load<T, N>(x, i);
#pragma unroll
    for (int j = 0; j < N; ++j) p.at[j] = down<T>(up<T>(p.at[j]) * wide_t<T>(factor));
    store<T, N>(y, i, p);
  }
  EACH(i, n / N * N, n) y[i] = down<T>(up<T>(x[i]) * wide_t<T>(factor));
}
extern "C" __global__ void ones(unsigned char* mask, long long n) {
  EACH(i, 0, n) mask[i] = 1;
}
