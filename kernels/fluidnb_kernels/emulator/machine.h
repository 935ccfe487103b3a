// A CUDA device of one processor thread: each CUDA thread is a fiber, run until it waits for others.
//
// Scheduling between waits is free in CUDA, so a kernel must give the same in any order. Three orders are offered:
// forwards, backwards, shuffled. Shared memory is poisoned (all bits set: NaN, -1) before each block, barriers and warp
// masks are checked, and whatever a GPU would leave undefined is a mistake that names the kernel's line.
#pragma once
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <type_traits>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

struct emu_uint3 { unsigned x, y, z; };

namespace emu {

constexpr int WARP = 32, MOST_THREADS = 1024;
constexpr size_t STACK = 128 << 10;
constexpr unsigned char POISON = 0xFF;

enum State : uint8_t { RUNS, AT_BARRIER, IN_WARP, DONE };
enum Exchange : uint8_t { SYNC, SHUFFLE, BALLOT };

// One CUDA thread. `value` is its input of a warp exchange, `result` its output.
struct Fiber {
  void* sp;
  char* stack;
  emu_uint3 index;
  State state;
  Exchange exchange;
  unsigned source;
  int line;
  unsigned mask;
  uint64_t value, result;
  int predicate;
#if defined(__SANITIZE_ADDRESS__)
  void* fake;
#endif
};

// A stretch of shared memory that a kernel declares with a fixed size.
struct Region {
  void* start;
  size_t size;
  Region* next;
};

struct Device {
  Fiber fibers[MOST_THREADS];
  int count = 0;
  Fiber* current = nullptr;
  void* scheduler_sp = nullptr;
  char* stacks[MOST_THREADS];
  int spare = 0;
  void (*entry)(void**) = nullptr;
  void** args = nullptr;
  char* dynamic = nullptr;
  size_t dynamic_size = 0;
  Region* regions = nullptr;
  bool failed = false;
  char message[400];
  int all, any, number;  // what __syncthreads_and, _or and _count give
  unsigned long long barriers = 0, exchanges = 0, threads = 0;
#if defined(__SANITIZE_ADDRESS__)
  void* scheduler_fake = nullptr;
  const void* scheduler_stack = nullptr;
  size_t scheduler_size = 0;
#endif
};

static Device device;
}  // namespace emu

static emu_uint3 threadIdx, blockIdx;

namespace emu {

// ---- switching between fibers

extern "C" void emu_switch(void** save, void* load);
#if defined(__x86_64__)
asm(".text\n.globl emu_switch\n.hidden emu_switch\n.type emu_switch,@function\nemu_switch:\n"
    "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
    "movq %rsp,(%rdi)\nmovq %rsi,%rsp\n"
    "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nretq\n"
    ".size emu_switch,.-emu_switch\n");
#else
extern "C" void emu_switch(void** save, void* load) {
  ucontext_t here;
  *save = &here;
  swapcontext(&here, static_cast<ucontext_t*>(load));
}
#endif

static inline void to_scheduler() {
#if defined(__SANITIZE_ADDRESS__)
  Fiber* me = device.current;
  __sanitizer_start_switch_fiber(me->state == DONE ? nullptr : &me->fake, device.scheduler_stack, device.scheduler_size);
#endif
  emu_switch(&device.current->sp, device.scheduler_sp);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(device.current->fake, &device.scheduler_stack, &device.scheduler_size);
#endif
}

// Reports an error; the launch ends with the first one.
template <class... Parts>
static void complain(const char* format, Parts... parts) {
  if (device.failed) return;
  device.failed = true;
  snprintf(device.message, sizeof device.message, format, parts...);
}

[[noreturn]] static void fail(const char* what, int line) {
  complain("line %d: %s, in thread (%u,%u,%u) of block (%u,%u,%u)", line, what, threadIdx.x, threadIdx.y, threadIdx.z,
           blockIdx.x, blockIdx.y, blockIdx.z);
  device.current->state = DONE;
  to_scheduler();
  __builtin_unreachable();
}

static void run_thread() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &device.scheduler_stack, &device.scheduler_size);
#endif
  device.entry(device.args);
  device.current->state = DONE;
  to_scheduler();
  __builtin_unreachable();
}

static void start(Fiber* fiber) {
  if (!device.spare)
    device.stacks[device.spare++] = static_cast<char*>(
        mmap(nullptr, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  fiber->stack = device.stacks[--device.spare];
#if defined(__x86_64__)
  // Tops of stacks have different offsets in a page, or they would share a few cache lines.
  size_t shift = ((fiber - device.fibers) * 576) & 8191 & ~size_t(63);
  void** sp = reinterpret_cast<void**>(fiber->stack + STACK - 64 - shift);
  *--sp = nullptr;
  *--sp = reinterpret_cast<void*>(run_thread);
  for (int i = 0; i < 6; i++) *--sp = nullptr;
  fiber->sp = sp;
#else
  ucontext_t* context = reinterpret_cast<ucontext_t*>(fiber->stack);
  getcontext(context);
  context->uc_stack.ss_sp = fiber->stack + 4096;
  context->uc_stack.ss_size = STACK - 4096;
  context->uc_link = nullptr;
  makecontext(context, run_thread, 0);
  fiber->sp = context;
#endif
}

static inline void resume(Fiber* fiber) {
  if (!fiber->sp) start(fiber);
  device.current = fiber;
  threadIdx = fiber->index;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&device.scheduler_fake, fiber->stack, STACK);
#endif
  emu_switch(&device.scheduler_sp, fiber->sp);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(device.scheduler_fake, nullptr, nullptr);
#endif
  asm volatile("" ::: "memory");
  if (fiber->state == DONE) device.stacks[device.spare++] = fiber->stack;
}

// ---- wait states of threads

static inline void barrier(int line, int predicate = 1) {
  Fiber* me = device.current;
  me->state = AT_BARRIER;
  me->line = line;
  me->predicate = predicate;
  to_scheduler();
}

static inline uint64_t exchange(Exchange kind, unsigned mask, int line, uint64_t value, unsigned source, int predicate) {
  Fiber* me = device.current;
  me->exchange = kind;
  me->mask = mask;
  me->line = line;
  me->value = value;
  me->source = source;
  me->predicate = predicate;
  me->state = IN_WARP;
  to_scheduler();
  return me->result;
}

// Release every group of lanes that wait for each other; returns whether there was one.
static bool release_warp(Fiber* warp, int lanes) {
  bool released = false;
  for (int lane = 0; lane < lanes; lane++) {
    if (warp[lane].state != IN_WARP) continue;
    unsigned mask = warp[lane].mask;
    if (!((mask >> lane) & 1)) {
      complain("line %d: lane %d is not in the mask %08x that it gives", warp[lane].line, lane, mask);
      return false;
    }
    bool complete = true;
    for (int other = 0; other < lanes && complete; other++) {
      if (!((mask >> other) & 1) || warp[other].state == DONE) continue;
      if (warp[other].state != IN_WARP) {
        complete = false;
      } else if (warp[other].mask != mask || warp[other].exchange != warp[lane].exchange) {
        complain("lanes of one warp wait for different things: lane %d at line %d with mask %08x, lane %d at line %d "
                 "with mask %08x", lane, warp[lane].line, mask, other, warp[other].line, warp[other].mask);
        return false;
      }
    }
    if (!complete) continue;
    unsigned ballot = 0;
    for (int other = 0; other < lanes; other++)
      if (((mask >> other) & 1) && warp[other].state == IN_WARP && warp[other].predicate) ballot |= 1u << other;
    for (int other = 0; other < lanes; other++) {
      Fiber& it = warp[other];
      if (!((mask >> other) & 1) || it.state != IN_WARP) continue;
      if (it.exchange == SHUFFLE) {
        int from = static_cast<int>(it.source);
        bool there = from < lanes && ((mask >> from) & 1) && warp[from].state != DONE;
        it.result = there ? warp[from].value : ~uint64_t(0);  // undefined in CUDA: poison
      } else {
        it.result = ballot;
      }
    }
    for (int other = 0; other < lanes; other++)
      if (((mask >> other) & 1) && warp[other].state == IN_WARP) warp[other].state = RUNS;
    released = true;
    device.exchanges++;
  }
  return released;
}

// All remaining threads wait at barriers: release them if it is the same one for the whole block.
static void release_barrier(int count, int done) {
  int line = 0, all = 1, any = 0, number = 0;
  for (int i = 0; i < count; i++) {
    Fiber& it = device.fibers[i];
    if (it.state != AT_BARRIER) continue;
    if (!line) line = it.line;
    if (line != it.line) {
      complain("__syncthreads is reached at different lines, %d and %d, in block (%u,%u,%u)", line, it.line, blockIdx.x,
               blockIdx.y, blockIdx.z);
      return;
    }
    all &= it.predicate != 0;
    any |= it.predicate != 0;
    number += it.predicate != 0;
  }
  if (done) {
    complain("line %d: __syncthreads is not reached by %d of %d threads, which have ended", line, done, count);
    return;
  }
  device.all = all;
  device.any = any;
  device.number = number;
  device.barriers++;
  for (int i = 0; i < count; i++) device.fibers[i].state = RUNS;
}

// ---- blocks and launches

enum Order { FORWARD, REVERSE, SHUFFLED };

static void run_block(int order, unsigned seed) {
  for (Region* region = device.regions; region; region = region->next) memset(region->start, POISON, region->size);
  if (device.dynamic_size) memset(device.dynamic, POISON, device.dynamic_size);
  int count = device.count, warps = (count + WARP - 1) / WARP;
  for (int i = 0; i < count; i++) {
    device.fibers[i].state = RUNS;
    device.fibers[i].sp = nullptr;
  }
  device.threads += count;
  int warp_order[WARP], lane_order[WARP];
  for (int i = 0; i < warps; i++) warp_order[i] = order == REVERSE ? warps - 1 - i : i;
  for (int i = 0; i < WARP; i++) lane_order[i] = order == REVERSE ? WARP - 1 - i : i;
  if (order == SHUFFLED) {
    auto next = [&seed](int below) { return int((seed = seed * 1664525u + 1013904223u) >> 8) % below; };
    for (int i = warps - 1; i > 0; i--) std::swap(warp_order[i], warp_order[next(i + 1)]);
    for (int i = WARP - 1; i > 0; i--) std::swap(lane_order[i], lane_order[next(i + 1)]);
  }
  for (;;) {
    bool moved = false;
    int done = 0, waiting = 0;
    for (int w = 0; w < warps; w++) {
      Fiber* warp = device.fibers + warp_order[w] * WARP;
      int lanes = count - warp_order[w] * WARP < WARP ? count - warp_order[w] * WARP : WARP;
      do {
        for (int k = 0; k < WARP; k++) {
          int lane = lane_order[k];
          if (lane >= lanes || warp[lane].state != RUNS) continue;
          resume(warp + lane);
          moved = true;
          if (device.failed) return;
        }
      } while (release_warp(warp, lanes));
      if (device.failed) return;
      for (int lane = 0; lane < lanes; lane++) {
        done += warp[lane].state == DONE;
        waiting += warp[lane].state == AT_BARRIER;
      }
    }
    if (done == count) return;
    if (waiting && waiting + done == count) {
      release_barrier(count, done);
    } else if (!moved) {
      for (int i = 0; i < count; i++)
        if (device.fibers[i].state == IN_WARP)
          complain("line %d: thread %d waits for lanes of mask %08x that never come", device.fibers[i].line, i,
                   device.fibers[i].mask);
    }
    if (device.failed) return;
  }
}
}  // namespace emu
