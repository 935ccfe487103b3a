// The sums of average_accumulates: moves 4 elements in and 3 out for each of the parameter, and aims at the bandwidth of
// a device copy. The counts are advanced by a separate launch, since they may be updated in place.
#include "fluid.cuh"

// The decisions of this update by the counts: after `part` updates the newest sum moves on; a full window is put aside.
struct counts { long long updates, counted; bool move, full; };
__device__ __forceinline__ counts counts_of(const long long* updates, const long long* counted, double window,
                                            long long low, long long high, long long part) {
  counts k = {*updates + 1, *counted + 1};
  long long share = static_cast<long long>(k.updates * window);
  k.move = k.updates % part == 0;
  k.full = k.counted >= low && k.counted >= (high < share ? high : share);
  return k;
}

template <class T>
__global__ void average_sums(const T* p, const T* first, const T* second, const T* old, const long long* updates,
                             const long long* counted, T* first_out, T* second_out, T* old_out, double window,
                             long long low, long long high, long long part, long long n) {
  typedef wide_t<T> C;
  const counts k = counts_of(updates, counted, window, low, high, part);
  EACH(i, 0, n) {
    C newest = up<T>(first[i]) + up<T>(p[i]), before = up<T>(second[i]), aside = up<T>(old[i]);
    if (k.move) {
      before += newest;
      newest = 0;
    }
    if (k.full) {
      aside = newest + before;
      newest = before = 0;
    }
    first_out[i] = down<T>(newest);
    second_out[i] = down<T>(before);
    old_out[i] = down<T>(aside);
  }
}

extern "C" __global__ void average_counts(const long long* counted, const long long* before, const long long* updates,
                                          long long* counted_out, long long* before_out, long long* updates_out,
                                          double window, long long low, long long high, long long part) {
  const counts k = counts_of(updates, counted, window, low, high, part);
  *before_out = k.full ? k.counted : *before;
  *counted_out = k.full ? 0 : k.counted;
  *updates_out = k.updates;
}
