// The part of CUDA C++ that kernels see: keywords, built-in variables, vector types, intrinsics, half precision.
#pragma once
#include "machine.h"

#include <cmath>

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define FLUIDNB_EMULATOR 1
#define __global__ static
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static
#undef assert
#define assert(e) ((e) ? (void)0 : emu::fail("assert(" #e ") does not hold", __LINE__))
#define __trap() emu::fail("__trap()", __LINE__)
#define warpSize 32

using std::isfinite;
using std::isinf;
using std::isnan;

typedef unsigned int uint;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef emu_uint3 uint3;

// ---- vector types

#define EMU_VECTORS(T, N)                                                             \
  struct __align__(2 * sizeof(T)) N##2 { T x, y; };                                   \
  struct N##3 { T x, y, z; };                                                         \
  struct __align__((4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T))) N##4 { T x, y, z, w; }; \
  static inline N##2 make_##N##2(T x, T y) { return N##2{x, y}; }                     \
  static inline N##3 make_##N##3(T x, T y, T z) { return N##3{x, y, z}; }             \
  static inline N##4 make_##N##4(T x, T y, T z, T w) { return N##4{x, y, z, w}; }
EMU_VECTORS(float, float)
EMU_VECTORS(double, double)
EMU_VECTORS(int, int)
EMU_VECTORS(short, short)
EMU_VECTORS(unsigned short, ushort)
EMU_VECTORS(signed char, char)
EMU_VECTORS(unsigned char, uchar)
EMU_VECTORS(long long, longlong)
EMU_VECTORS(unsigned long long, ulonglong)
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
static inline uint2 make_uint2(unsigned x, unsigned y) { return uint2{x, y}; }
static inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return uint3{x, y, z}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return uint4{x, y, z, w}; }

// ---- shared memory

// Make a declaration of shared memory known, so that it is poisoned before each block, and before its first use.
#define EMU_SHARED(name)                                                                                  \
  {                                                                                                       \
    static emu::Region region_ = {(void*)&name, sizeof(name), nullptr};                                   \
    static bool known_ = (region_.next = emu::device.regions, emu::device.regions = &region_,             \
                          memset((void*)&name, emu::POISON, sizeof(name)), true);                         \
    (void)known_;                                                                                         \
  }
#define EMU_DYNAMIC(T) reinterpret_cast<T*>(emu::device.dynamic)

// ---- barriers and warps

namespace emu {
static inline unsigned lane() { return unsigned(device.current - device.fibers) & 31u; }
static inline unsigned whole(unsigned mask = 0xffffffffu) { return mask; }

template <class T>
static inline T shuffle(unsigned mask, T value, unsigned source, int line) {
  static_assert(sizeof(T) <= 8, "a shuffle moves 8 bytes at most");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  bits = exchange(SHUFFLE, mask, line, bits, source, 0);
  memcpy(&value, &bits, sizeof value);
  return value;
}
// Which lane a shuffle reads, within groups of `width` lanes; a lane that would read outside its group reads itself.
static inline unsigned at_index(int i, int width) { return (lane() & ~(width - 1)) + (unsigned(i) & (width - 1)); }
static inline unsigned at_down(int d, int width) { return (lane() & (width - 1)) + d < unsigned(width) ? lane() + d : lane(); }
static inline unsigned at_up(int d, int width) { return (lane() & (width - 1)) >= unsigned(d) ? lane() - d : lane(); }
static inline unsigned at_xor(int x, int width) {
  unsigned to = lane() ^ x;
  return (to & ~(width - 1)) <= (lane() & ~(width - 1)) ? to : lane();
}
}  // namespace emu

#define __syncthreads() emu::barrier(__LINE__)
#define __syncthreads_and(p) (emu::barrier(__LINE__, (p)), emu::device.all)
#define __syncthreads_or(p) (emu::barrier(__LINE__, (p)), emu::device.any)
#define __syncthreads_count(p) (emu::barrier(__LINE__, (p)), emu::device.number)
#define __syncwarp(...) ((void)emu::exchange(emu::SYNC, emu::whole(__VA_ARGS__), __LINE__, 0, 0, 0))
#define EMU_SHUFFLE(where) \
  [&](unsigned mask, auto value, int by, int width = 32) { return emu::shuffle(mask, value, emu::where(by, width), __LINE__); }
#define __shfl_sync EMU_SHUFFLE(at_index)
#define __shfl_down_sync EMU_SHUFFLE(at_down)
#define __shfl_up_sync EMU_SHUFFLE(at_up)
#define __shfl_xor_sync EMU_SHUFFLE(at_xor)
#define __ballot_sync(mask, p) unsigned(emu::exchange(emu::BALLOT, (mask), __LINE__, 0, 0, !!(p)))
#define __any_sync(mask, p) (__ballot_sync(mask, p) != 0)
#define __all_sync(mask, p) (__ballot_sync(mask, !(p)) == 0)
static inline void __threadfence() {}
static inline void __threadfence_block() {}

// ---- atomics: fibers change places at waits only, so each is whole by itself

#define EMU_ATOMIC(name, expression)            \
  template <class T, class U>                   \
  static inline T name(T* where, U given) {     \
    T value = static_cast<T>(given), old = *where; \
    *where = expression;                        \
    return old;                                 \
  }
EMU_ATOMIC(atomicAdd, static_cast<T>(old + value))
EMU_ATOMIC(atomicSub, old - value)
EMU_ATOMIC(atomicMax, old > value ? old : value)
EMU_ATOMIC(atomicMin, old < value ? old : value)
EMU_ATOMIC(atomicExch, value)
EMU_ATOMIC(atomicOr, old | value)
EMU_ATOMIC(atomicAnd, old & value)
template <class T>
static inline T atomicCAS(T* where, T expected, T value) {
  T old = *where;
  if (old == expected) *where = value;
  return old;
}

// ---- loads, bits, arithmetic

#define EMU_LOAD(name) \
  template <class T>   \
  static inline T name(const T* p) { return *p; }
EMU_LOAD(__ldg)
EMU_LOAD(__ldcs)
EMU_LOAD(__ldca)
template <class T>
static inline void __stcs(T* p, T value) { *p = value; }

template <class To, class From>
static inline To emu_bits(From x) {
  static_assert(sizeof(To) == sizeof(From), "bits");
  To y;
  memcpy(&y, &x, sizeof y);
  return y;
}
static inline float __int_as_float(int x) { return emu_bits<float>(x); }
static inline int __float_as_int(float x) { return emu_bits<int>(x); }
static inline float __uint_as_float(unsigned x) { return emu_bits<float>(x); }
static inline unsigned __float_as_uint(float x) { return emu_bits<unsigned>(x); }
static inline long long __double_as_longlong(double x) { return emu_bits<long long>(x); }
static inline double __longlong_as_double(long long x) { return emu_bits<double>(x); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((uint64_t(a) * b) >> 32); }
#define __expf(x) expf(x)  // macros: the C library has functions of these names
#define __logf(x) logf(x)
#define __powf(x, y) powf(x, y)
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.f / x; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline float rsqrtf(float x) { return 1.f / sqrtf(x); }
static inline double rsqrt(double x) { return 1. / sqrt(x); }
template <class T, class U>
static inline std::common_type_t<T, U> min(T a, U b) { return b < a ? b : a; }
template <class T, class U>
static inline std::common_type_t<T, U> max(T a, U b) { return a < b ? b : a; }
static inline long long clock64() { return 0; }

// ---- half precision: stored in 16 bits, computed in float

struct __half { uint16_t bits; };
typedef __half half;
struct __nv_bfloat16 { uint16_t bits; };
static inline float __half2float(__half x) { return static_cast<float>(emu_bits<_Float16>(x.bits)); }
static inline __half __float2half(float x) { return {emu_bits<uint16_t>(static_cast<_Float16>(x))}; }
static inline float __bfloat162float(__nv_bfloat16 x) { return emu_bits<float>(uint32_t(x.bits) << 16); }
static inline __nv_bfloat16 __float2bfloat16(float x) {
  uint32_t bits = emu_bits<uint32_t>(x);
  if (x != x) return {uint16_t(0x7fff)};
  return {uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16)};  // to the nearest, ties to even
}

#include "launch.h"
