// dropout and its gradient, with the very numbers that the host draws: word n of a stream is computed from n alone.
//
// A thread makes four words of 64 bits by Philox 4x64-10 (Salmon et al., 2011) and serves 8 elements with them, or 4
// of float64: 24 random bits are a float's, 53 a double's. Forward moves x in, Out and a byte of Mask out; the gradient
// two elements and a byte. The rounds are some 30 operations for each element, so that the forward of float32 is bound
// by memory and arithmetic alike.
#include "fluid.cuh"

typedef unsigned long long word;

__device__ __forceinline__ word upper(word a, word b) {  // the upper half of a product
  word low = (a & 0xffffffffu) * (b & 0xffffffffu), one = (a >> 32) * (b & 0xffffffffu);
  word two = (a & 0xffffffffu) * (b >> 32), middle = (low >> 32) + (one & 0xffffffffu) + (two & 0xffffffffu);
  return (a >> 32) * (b >> 32) + (one >> 32) + (two >> 32) + (middle >> 32);
}

__device__ __forceinline__ void philox(word* c, word key0, word key1) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    word a = 0xD2E7470EE14C6C93ull, b = 0xCA5A826395121157ull;
    word first = upper(b, c[2]) ^ c[1] ^ key0, third = upper(a, c[0]) ^ c[3] ^ key1;
    c[1] = b * c[2];
    c[3] = a * c[0];
    c[0] = first;
    c[2] = third;
    key0 += 0x9E3779B97F4A7C15ull;
    key1 += 0xBB67AE8584CAA73Bull;
  }
}

// Number i of the four words' numbers, from [0, 1).
template <class C> struct unit;
template <> struct unit<float> {
  static constexpr int count = 8;
  static __device__ __forceinline__ float at(const word* c, int i) {
    return static_cast<unsigned>(c[i >> 1] >> (i & 1) * 32 + 8 & 0xffffff) * (1.f / 16777216.f);
  }
};
template <> struct unit<double> {
  static constexpr int count = 4;
  static __device__ __forceinline__ double at(const word* c, int i) { return (c[i] >> 11) * (1. / 9007199254740992.); }
};

template <class T>
__global__ void dropout(const T* x, T* out, unsigned char* mask, word key0, word key1, word path, word run, word rest,
                        double rate, double divisor, long long n) {
  typedef wide_t<T> C;
  constexpr int count = unit<C>::count;
  EACH(block, 0, (n + count - 1) / count) {
    word c[4] = {static_cast<word>(block) + 1, path, run, rest};
    philox(c, key0, key1);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      long long at = block * count + i;
      if (at >= n) continue;
      bool stays = unit<C>::at(c, i) >= C(rate);
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
