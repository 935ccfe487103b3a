// What all kernel files share: half precision computed in float, several elements in one load, loops over a grid.
#pragma once
#include <cuda_fp16.h>
#include <cuda_bf16.h>

#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif

// ---- elements: stored as T, computed as wide_t<T>

template <class T> struct wide { typedef T type; };
template <> struct wide<__half> { typedef float type; };
template <> struct wide<__nv_bfloat16> { typedef float type; };
template <class T> using wide_t = typename wide<T>::type;

template <class T> __device__ __forceinline__ wide_t<T> up(T x) { return x; }
template <> __device__ __forceinline__ float up<__half>(__half x) { return __half2float(x); }
template <> __device__ __forceinline__ float up<__nv_bfloat16>(__nv_bfloat16 x) { return __bfloat162float(x); }

template <class T> __device__ __forceinline__ T down(wide_t<T> x) { return x; }
template <> __device__ __forceinline__ __half down<__half>(float x) { return __float2half(x); }
template <> __device__ __forceinline__ __nv_bfloat16 down<__nv_bfloat16>(float x) { return __float2bfloat16(x); }

// ---- N elements that are loaded and stored at once

template <class T, int N> struct alignas(sizeof(T) * N) pack { T at[N]; };

template <class T, int N> __device__ __forceinline__ pack<T, N> load(const T* p, long long i) {
  return reinterpret_cast<const pack<T, N>*>(p)[i];
}
template <class T, int N> __device__ __forceinline__ void store(T* p, long long i, const pack<T, N>& x) {
  reinterpret_cast<pack<T, N>*>(p)[i] = x;
}

// ---- loops over a grid

__device__ __forceinline__ long long first_of_grid() { return blockIdx.x * (long long)blockDim.x + threadIdx.x; }
__device__ __forceinline__ long long grid_step() { return gridDim.x * (long long)blockDim.x; }
#define EACH(i, from, to) for (long long i = (from) + first_of_grid(); i < (to); i += grid_step())
