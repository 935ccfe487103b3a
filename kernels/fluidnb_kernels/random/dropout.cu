// dropout and its gradient, with the very numbers that the host draws: word n of a stream is computed from n alone.
//
// A thread makes four words of 64 bits by Philox 4x64-10 (Salmon et al., 2011) and serves 8 elements with them, or 4
// of float64: 24 random bits are a float's, 53 a double's. Forward moves x in, Out and a byte of Mask out; the gradient
// two elements and a byte. The rounds are some 30 operations for each element, so that the forward of float32 is bound
// by memory and arithmetic alike.
#include "philox.cuh"

template <class T>
__global__ void dropout(const T* x, T* out, unsigned char* mask, STREAM, double rate, double divisor, long long n) {
  typedef wide_t<T> C;
  constexpr int count = unit<C>::count;
  EACH(block, 0, (n + count - 1) / count) {
    block_of_words words = WORDS(block);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      long long at = block * count + i;
      if (at >= n) continue;
      bool stays = unit<C>::at(words.at, i) >= C(rate);
      mask[at] = stays;
      out[at] = down<T>(up<T>(x[at]) * C(stays) / C(divisor));
    }
  }
}

template <class T>
__global__ void masked(const T* g, const unsigned char* mask, T* dx, double divisor, long long n) {
  EACH(i, 0, n) dx[i] = down<T>(up<T>(g[i]) * wide_t<T>(mask[i]) / wide_t<T>(divisor));
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
