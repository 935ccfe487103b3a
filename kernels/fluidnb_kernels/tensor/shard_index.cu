// shard_index: numbers of a table's rows as numbers of one share, or the value for rows of other shares.
//
// A read and a write for each number: bound by the bandwidth of a device copy. A number outside the table stops the
// kernel: there is nothing to give for it.
#include "fluid.cuh"

template <class T>
__global__ void shard(const T* x, T* out, long long total, long long size, long long mine, long long ignored,
                      long long n) {
  EACH(i, 0, n) {
    long long id = x[i];
    if (id < 0 || id >= total) __trap();
    out[i] = T(id / size == mine ? id - mine * size : ignored);
  }
}
