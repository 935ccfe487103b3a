// Conditional random fields over chains of tags: how unlikely the tags of each sequence are, and the gradient.
//
// A block takes a sequence and goes along it, for each position depends on the one before: tags² products each, forward
// a thread for a tag and down the columns of the weights, backward a warp for a tag and along their rows. It is bound by
// the latency of a position, and the device is busy when there are some hundred sequences. Chances are scaled to a sum
// of 1 at each position, so that none underflows. What is expected of pairs of tags is one product of matrices over all
// positions (gemm.cu) of what crf_back leaves in `came` and `ahead`; crf_exps and pairs_back move each element once in
// and out. A tag that there is none of stops the kernel.
#include "reduce.cuh"

template <class I> __device__ __forceinline__ long long tag_at(const I* label, long long at, long long tags) {
  const long long tag = label[at];
  if (tag < 0 || tag >= tags) __trap();
  return tag;
}

// exps = exp(x - the row's largest), which goes to `top`
template <class C>
__global__ void crf_exps(const C* x, C* exps, C* top, long long lines, long long n, long long, int way) {
  EACH_LINE(line, lines, way) {
    const bool there = line < lines;
    C most = ends<C>::low();
    if (there) EACH_MEMBER(k, n, way) most = join::largest::both(most, x[line * n + k]);
    most = over_line<join::largest>(most, way);
    if (!there) continue;
    EACH_MEMBER(k, n, way) exps[line * n + k] = exp(x[line * n + k] - most);
    if (member(way) == 0) top[line] = most;
  }
}
template <class C> __global__ void exps_of(const C* x, C* y, long long n) {
  EACH(i, 0, n) y[i] = exp(x[i]);
}

// Rows of a sequence start at starts[s]; `lengths[s]` are its own, those behind them up to starts[s + 1] get zeros.
template <class C, class I>
__global__ void crf_forward(const C* x, const C* exps, const C* top, const C* transition, const C* weights,
                            const I* label, const long long* starts, const long long* lengths, C* alpha, C* cost,
                            long long tags) {
  const long long s = blockIdx.x, first = starts[s], length = lengths[s];
  C total = 0;  // of the first thread
  long long before = 0;
  for (long long t = 0; t < length; ++t) {
    const long long row = first + t;
    C sum = 0;
    for (long long j = threadIdx.x; j < tags; j += blockDim.x) {
      C way = t ? C(0) : weights[j];
      if (t)
        for (long long k = 0; k < tags; ++k) way += alpha[(row - 1) * tags + k] * weights[(2 + k) * tags + j];
      way *= exps[row * tags + j];
      alpha[row * tags + j] = way;
      sum += way;
    }
    const C norm = over_block<join::sum>(sum);
    for (long long j = threadIdx.x; j < tags; j += blockDim.x) alpha[row * tags + j] /= norm;
    if (threadIdx.x == 0) {
      const long long tag = tag_at(label, row, tags);
      total += log(norm) + top[row] - x[row * tags + tag] - transition[(t ? 2 + before : 0) * tags + tag];
      before = tag;
    }
    __syncthreads();
  }
  C sum = 0;
  if (length)
    for (long long j = threadIdx.x; j < tags; j += blockDim.x) sum += alpha[(first + length - 1) * tags + j] * weights[tags + j];
  sum = over_block<join::sum>(sum);
  if (threadIdx.x == 0) cost[s] = length ? total + log(sum) - transition[tags + before] : C(0);
  for (long long i = (first + length) * tags + threadIdx.x; i < starts[s + 1] * tags; i += blockDim.x) alpha[i] = C(0);
}

// dx: the chance of each tag less 1 for that of the label, times the sequence's gradient. For the weights from tag to
// tag, came^T · ahead is what is expected divided by the exponentials of the weights, and `said` counts the labels'.
template <class C, class I>
__global__ void crf_back(const C* alpha, const C* exps, const C* weights, const I* label, const C* g,
                         const long long* starts, const long long* lengths, C* beta, C* dx, C* came, C* ahead, C* said,
                         long long tags) {
  const long long s = blockIdx.x, first = starts[s], length = lengths[s];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  const C share = g[s];
  for (long long t = length - 1; t >= 0; --t) {
    const long long at = (first + t) * tags, next = at + tags;
    const bool last = t == length - 1;
    C sum = 0;
    for (long long k = warp; k < tags; k += warps) {
      C way = 0;
      if (last) {
        way = weights[tags + k];
      } else {
        for (long long j = lane; j < tags; j += 32) way += weights[(2 + k) * tags + j] * ahead[next + j];
        way = over_warp<join::sum>(way);
      }
      if (lane == 0) {
        beta[at + k] = way;
        sum += way;
      }
    }
    sum = over_block<join::sum>(sum);
    C chance = 0;
    for (long long k = threadIdx.x; k < tags; k += blockDim.x) {
      const C b = beta[at + k] / sum;
      beta[at + k] = b;
      ahead[at + k] = exps[at + k] * b;
      chance += alpha[at + k] * b;
    }
    chance = over_block<join::sum>(chance);
    const long long tag = tag_at(label, first + t, tags);
    for (long long k = threadIdx.x; k < tags; k += blockDim.x) {
      const C one = alpha[at + k], expected = one * beta[at + k] * (share / chance);
      dx[at + k] = k == tag ? expected - share : expected;
      if (!last) came[next + k] = one * (share / (sum * chance));
      if (t == 0) came[at + k] = C(0);
    }
    if (threadIdx.x == 0 && !last) atomicAdd(said + tag * tags + tag_at(label, first + t + 1, tags), share);
    __syncthreads();
  }
  for (long long i = (first + length) * tags + threadIdx.x; i < starts[s + 1] * tags; i += blockDim.x)
    dx[i] = came[i] = ahead[i] = C(0);
}

// What is expected of first and last tags, over all sequences, and of pairs of tags, less how often the labels have them.
template <class C>
__global__ void ends_back(const C* dx, const long long* starts, const long long* lengths, C* out, long long sequences,
                          long long tags) {
  EACH(j, 0, tags) {
    C begins = 0, stops = 0;
    for (long long s = 0; s < sequences; ++s)
      if (lengths[s]) {
        begins += dx[starts[s] * tags + j];
        stops += dx[(starts[s] + lengths[s] - 1) * tags + j];
      }
    out[j] = begins;
    out[tags + j] = stops;
  }
}
template <class C> __global__ void pairs_back(const C* expected, const C* weights, const C* said, C* out, long long n) {
  EACH(i, 0, n) out[i] = expected[i] * weights[i] - said[i];
}
