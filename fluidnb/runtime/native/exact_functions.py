"""C text of functions with the bits that numpy computes on processors with AVX2 and FMA.

The larger and the smaller of two numbers are the second where both are 0, and the first where it is NaN. exp and log
are those of float32. Their steps are those of numpy's vector code: exp reduces its argument by multiples of log 2, log
takes the exponent apart; both end with a quotient of two polynomials. A sum has eight sums side by side in each block
of at most 128 numbers, and adds the blocks in pairs. Whether they agree with the numpy that runs is tried out once.
"""

import ctypes
from functools import cache
from typing import Any

import numpy as np

from fluidnb.runtime.native.compiler import library

#: ufunc -> name of the C function.
NAMES: dict[Any, str] = {np.exp: "exp_float", np.log: "log_float"}
#: Type character -> name of the C function for the sum of numbers that lie side by side.
SUMS = {"f": "sum_float", "d": "sum_double"}

TEXT = """
#define INLINE static inline __attribute__((always_inline))
INLINE float float_of(int32_t bits) { float f; __builtin_memcpy(&f, &bits, 4); return f; }
INLINE double double_of(int64_t bits) { double f; __builtin_memcpy(&f, &bits, 8); return f; }
INLINE int32_t bits_of(float f) { int32_t bits; __builtin_memcpy(&bits, &f, 4); return bits; }
INLINE int64_t long_bits_of(double f) { int64_t bits; __builtin_memcpy(&bits, &f, 8); return bits; }
/* x where it is NaN, else y; by masks, since two conditions in a row take gcc 12 three times as long */
INLINE float nan_or_float(float x, float y) {
  int32_t nan = -(x != x);
  return float_of((bits_of(x) & nan) | (bits_of(y) & ~nan));
}
INLINE double nan_or_double(double x, double y) {
  int64_t nan = -(int64_t)(x != x);
  return double_of((long_bits_of(x) & nan) | (long_bits_of(y) & ~nan));
}
INLINE float max_float(float x, float y) { return nan_or_float(x, x > y ? x : y); }
INLINE float min_float(float x, float y) { return nan_or_float(x, x < y ? x : y); }
INLINE double max_double(double x, double y) { return nan_or_double(x, x > y ? x : y); }
INLINE double min_double(double x, double y) { return nan_or_double(x, x < y ? x : y); }
#ifdef __FMA__
#define FMA __builtin_fmaf
#else
#define FMA(x, y, z) ((x) * (y) + (z))
#endif
INLINE float exp_float(float x) {
  const float high = 88.72283935546875f, low = -103.97208404541015625f, round = 12582912.0f;
  float v = (x > low) & (x < high) ? x : 0;
  float k = (v * 1.44269504088896340736f + round) - round;
  float r = FMA(k, -1.42860677e-6f, FMA(k, -6.93145752e-1f, v));
  float p = FMA(5.082762527590693718096e-04f, r, 6.757896990527504603057e-03f);
  p = FMA(FMA(FMA(FMA(p, r, 5.114512081637298353406e-02f), r, 2.473615434895520810817e-01f), r,
      7.257664613233124478488e-01f), r, 9.999999999980870924916e-01f);
  float q = FMA(FMA(2.159509375685829852307e-02f, r, -2.742335390411667452936e-01f), r, 1.0f);
  int32_t n = (int32_t)k, half = n >> 1;
  float y = p / q * float_of((half + 127) << 23) * float_of((n - half + 127) << 23);
  y = x >= high ? __builtin_inff() : y;
  y = x <= low ? 0 : y;
  return x != x ? x : y;
}
INLINE float log_float(float x) {
  int32_t small = x < 1.17549435e-38f;
  int32_t bits = bits_of(small ? x * 67108864.0f : x);
  float m = float_of((bits & 0x007fffff) | 0x3f000000);
  int32_t below = m <= 0.70710678118654752440f;
  float k = (float)((int32_t)((uint32_t)bits >> 23) - 126 - (small ? 26 : 0));
  k = below ? k - 1 : k;  /* not in whole numbers: gcc 12 then computes one element at a time */
  m = (below ? m + m : m) - 1;
  float p = FMA(2.589979117907922693523e-02f, m, 3.808837741388407920751e-01f);
  p = FMA(FMA(FMA(FMA(p, m, 1.480000633576506585156e+00f), m, 2.112677543073053063722e+00f), m,
      9.999999999999998702752e-01f), m, 0.0f);
  float q = FMA(5.875095403124574342950e-03f, m, 1.546476374983906719538e-01f);
  q = FMA(FMA(FMA(FMA(q, m, 9.864942958519418960339e-01f), m, 2.453006071784736363091e+00f), m,
      2.612677543073109236779e+00f), m, 1.0f);
  float y = FMA(k, 0.693147180559945309417232121458176568f, p / q);
  y = x == __builtin_inff() ? x : y;
  y = x < 0 ? __builtin_nanf("") : y;
  y = x == 0 ? -__builtin_inff() : y;
  return x != x ? x : y;
}
#define SUM(T)                                                                                  \
  typedef T T##s __attribute__((vector_size(8 * sizeof(T))));                                   \
  INLINE T block_##T(const T *x, int64_t n) {                                                   \
    T sum = 0;                                                                                  \
    int64_t i = 0;                                                                              \
    if (n >= 8) {                                                                               \
      T##s sums, more;                                                                          \
      __builtin_memcpy(&sums, x, sizeof(sums));                                                 \
      for (i = 8; i < n - n % 8; i += 8) {                                                      \
        __builtin_memcpy(&more, x + i, sizeof(more));                                           \
        sums += more;                                                                           \
      }                                                                                         \
      sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7])); \
    }                                                                                           \
    for (; i < n; i++) sum += x[i];                                                             \
    return sum;                                                                                 \
  }                                                                                             \
  static T sum_##T(const T *x, int64_t n) {                                                     \
    if (n <= 128) return block_##T(x, n);                                                       \
    int64_t half = n / 2 - n / 2 % 8;                                                           \
    return sum_##T(x, half) + sum_##T(x + half, n - half);                                      \
  }
SUM(float)
SUM(double)
"""
_TRIAL = """
void try_{name}(const float *x, float *y, int64_t n) {{
#pragma omp simd
  for (int64_t i = 0; i < n; i++) y[i] = {name}(x[i]);
}}
"""
_SUM_TRIAL = """
void try_{name}(const {kind} *x, {kind} *y, int64_t n) {{ *y = 0 + {name}(x, n); }}
"""


@cache
def _trials() -> Any:
    """The library of functions that try the others out."""
    texts = [_TRIAL.format(name=name) for name in NAMES.values()]
    texts += [_SUM_TRIAL.format(name=name, kind=name.removeprefix("sum_")) for name in SUMS.values()]
    return ctypes.CDLL(str(library("#include <stdint.h>\n" + TEXT + "".join(texts))))


def _tried(name: str, x: Any, y: Any) -> Any:
    """The numbers that a function gives for x."""
    _trials()[f"try_{name}"](ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), ctypes.c_int64(x.size))
    return y


@cache
def agrees(ufunc: Any) -> bool:
    """Whether the C function of a ufunc gives numpy's bits for some 300,000 numbers of all sizes."""
    x = np.arange(0, 1 << 32, 14321, dtype=np.int64).astype(np.uint32).view(np.float32)
    x = np.concatenate([x, np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 1e-38, 88.72284, -103.972084], "f")])
    y = _tried(NAMES[ufunc], x, np.empty_like(x))
    with np.errstate(all="ignore"):
        wanted = ufunc(x)
    return bool(((y.view("u4") == wanted.view("u4")) | (np.isnan(y) & np.isnan(wanted))).all())


@cache
def sums_agree(char: str) -> bool:
    """Whether the C function for sums gives numpy's bits, for 1 to 600 numbers and some more."""
    x = np.random.default_rng(0).standard_normal(10_007).astype(char)
    return all(
        _tried(SUMS[char], x[:n], np.empty(1, char))[0] == np.add.reduce(x[None, :n], (1,))[0]
        for n in (*range(1, 601), 1000, 1024, 2049, 4096, 10_007)
    )
