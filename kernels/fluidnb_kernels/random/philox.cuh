// The random words of the host, computed where they are needed: word n of a stream follows from n alone.
//
// Philox 4x64-10 (Salmon et al., 2011) makes four words of 64 bits from a counter, whose first word counts blocks from
// 1 on. 24 random bits are a float's number, 53 a double's.
#pragma once
#include "rounded.cuh"

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

// What a stream's kernel gets: its key, and the words of the counter that stay.
#define STREAM word key0, word key1, word path, word run, word rest

struct block_of_words { word at[4]; };
__device__ __forceinline__ block_of_words words_of(long long block, STREAM) {
  block_of_words b = {{static_cast<word>(block) + 1, path, run, rest}};
  philox(b.at, key0, key1);
  return b;
}
#define WORDS(block) words_of(block, key0, key1, path, run, rest)
