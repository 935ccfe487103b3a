// Entry points of the kernels of a translated file: its signature as text, and a launch over a grid.
#pragma once

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
static dim3 blockDim, gridDim;

namespace emu {

// The type of a parameter as characters: numpy's for numbers, P before what a pointer points to, S for a struct.
template <class T>
struct Code {
  static void put(char*& out) {
    using U = std::remove_cv_t<T>;
    if constexpr (std::is_pointer_v<U>) {
      *out++ = 'P';
      Code<std::remove_pointer_t<U>>::put(out);
    } else if constexpr (std::is_same_v<U, bool>) {
      *out++ = '?';
    } else if constexpr (std::is_same_v<U, float>) {
      *out++ = 'f';
    } else if constexpr (std::is_same_v<U, double>) {
      *out++ = 'd';
    } else if constexpr (std::is_same_v<U, __half>) {
      *out++ = 'e';
    } else if constexpr (std::is_same_v<U, __nv_bfloat16>) {
      *out++ = 'E';
    } else if constexpr (std::is_integral_v<U>) {
      constexpr int place = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3;
      *out++ = (std::is_signed_v<U> ? "bhiq" : "BHIQ")[place];
    } else {
      *out++ = std::is_void_v<U> ? 'v' : 'S';
    }
  }
};

template <class... A>
static void signature(void (*)(A...), char* out) {
  ((Code<A>::put(out), *out++ = ','), ...);
  *out = 0;
}

template <class... A, size_t... I>
static inline void spread(void (*kernel)(A...), void** args, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_reference_t<A>*>(args[I])...);
}

template <class... A>
static inline void invoke(void (*kernel)(A...), void** args) {
  spread(kernel, args, std::index_sequence_for<A...>{});
}

// Run a kernel over a grid; on a mistake, 1 and a sentence in `error`.
static int launch(void (*entry)(void**), void** args, const unsigned* grid, const unsigned* block, size_t shared,
                  int order, unsigned seed, char* error) {
  gridDim = dim3(grid[0], grid[1], grid[2]);
  blockDim = dim3(block[0], block[1], block[2]);
  device.count = block[0] * block[1] * block[2];
  device.entry = entry;
  device.args = args;
  device.failed = false;
  device.dynamic = nullptr;
  device.dynamic_size = shared;
  void* made = nullptr;
  if (shared && posix_memalign(&made, 128, shared)) {
    snprintf(error, 400, "no memory for %zu bytes of shared memory", shared);
    return 1;
  }
  device.dynamic = static_cast<char*>(made);
  for (int i = 0; i < device.count; i++) {
    unsigned n = i;
    device.fibers[i].index = {n % block[0], n / block[0] % block[1], n / block[0] / block[1]};
  }
  unsigned long long blocks = 1ull * grid[0] * grid[1] * grid[2];
  for (unsigned long long b = 0; b < blocks && !device.failed; b++) {
    unsigned long long at = order == REVERSE ? blocks - 1 - b : b;
    blockIdx = {unsigned(at % grid[0]), unsigned(at / grid[0] % grid[1]), unsigned(at / grid[0] / grid[1])};
    run_block(order, seed + unsigned(b) * 7919u);
  }
  free(made);
  if (!device.failed) return 0;
  device.spare = 0;  // threads that were left in the middle keep their stacks
  memcpy(error, device.message, sizeof device.message);
  return 1;
}
}  // namespace emu

#define EMU_KERNEL(id, ...)                                                                                    \
  extern "C" int emu_run_##id(void** args, const unsigned* grid, const unsigned* block, size_t shared, int order, \
                              unsigned seed, char* error) {                                                    \
    return emu::launch([](void** a) { emu::invoke(&__VA_ARGS__, a); }, args, grid, block, shared, order, seed, \
                       error);                                                                                 \
  }                                                                                                            \
  extern "C" void emu_signature_##id(char* out) { emu::signature(&__VA_ARGS__, out); }

extern "C" void emu_counts(unsigned long long* out) {
  out[0] = emu::device.threads;
  out[1] = emu::device.barriers;
  out[2] = emu::device.exchanges;
}
