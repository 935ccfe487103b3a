// Connectionist temporal classification: how unlikely label sequences are, whatever the time steps of their labels.
//
// ctc_tops reads the logits once for what their softmax is divided by. In ctc_paths a block takes a sequence and goes
// along its time steps, a thread for a state: labels with a blank around each. It is bound by the latency of a step. The
// sums over all ways to a state stay in a workspace [steps, states] of each sequence, and become on the way back how
// likely it is to be in that state. ctc_shares reads the logits once more and writes as much: the softmax less what the
// states of a class have. Sums of probabilities are kept as logarithms. A label that there is no class for stops the kernel.
#include "reduce.cuh"
#include "row_grid.cuh"

// What belongs to a sequence, as Python gives it.
struct ctc_sequence {
  long long row, steps, label, labels, ways, states;  // the first row, how many; of labels; places in workspaces
};

template <class C> __device__ __forceinline__ C either(C a, C b) {
  const C high = a > b ? a : b, low = a > b ? b : a;
  return low == -C(INFINITY) ? high : high + log1p(exp(low - high));
}

template <class C>
__global__ void ctc_tops(const C* x, C* top, C* size, long long lines, long long n, long long, int way) {
  EACH_LINE(line, lines, way) {
    exponentials<C> s = join::exponentials_too::none<exponentials<C>>();
    if (line < lines) EACH_MEMBER(k, n, way) s = join::exponentials_too::both(s, exponential(x[line * n + k]));
    s = over_line<join::exponentials_too>(s, way);
    if (line < lines && member(way) == 0) {
      top[line] = s.top;
      size[line] = log(s.total);
    }
  }
}

// The probabilities of a sequence's states at its time steps.
template <class C, class I> struct ctc_chances {
  const C *x, *top, *size;
  const I* label;
  long long first, stride, classes, blank;
  __device__ __forceinline__ long long named(long long state) const { return state & 1 ? label[state >> 1] : blank; }
  __device__ __forceinline__ C at(long long t, long long state) const {
    const long long row = first + t * stride;
    return x[row * classes + named(state)] - top[row] - size[row];
  }
  // Whether a state can follow the one two before it.
  __device__ __forceinline__ bool skips(long long state) const {
    return state & 1 && state > 1 && named(state) != blank && named(state) != named(state - 2);
  }
};

template <class C, class I>
__global__ void ctc_paths(const C* x, const C* top, const C* size, const I* labels, const long long* sequences, C* ways,
                          C* ahead, long long* order, C* loss, long long stride, long long classes, long long blank,
                          long long all_states, int back) {
  const ctc_sequence s = reinterpret_cast<const ctc_sequence*>(sequences)[blockIdx.x];
  const ctc_chances<C, I> chance = {x, top, size, labels + s.label, s.row, stride, classes, blank};
  const long long states = 2 * s.labels + 1, last = s.steps - 1;
  C* alpha = ways + s.ways;
  // where each label comes among them all, by class
  for (long long k = threadIdx.x; k < s.labels; k += blockDim.x) {
    const I mine = chance.label[k];
    if (mine < 0 || mine >= classes) __trap();
    long long rank = 0;
    for (long long i = 0; i < s.labels; ++i) rank += chance.label[i] < mine || (chance.label[i] == mine && i < k);
    order[s.states + rank] = k;
  }
  __syncthreads();
  if (!s.steps) {
    if (threadIdx.x == 0) loss[blockIdx.x] = C(0);
    return;
  }
  for (long long t = 0; t <= last; ++t) {
    const C* old = alpha + (t - 1) * states;
    for (long long j = threadIdx.x; j < states; j += blockDim.x) {
      C sum = t || j > 1 ? -C(INFINITY) : C(0);
      if (t) {
        sum = old[j];
        if (j) sum = either(sum, old[j - 1]);
        if (chance.skips(j)) sum = either(sum, old[j - 2]);
      }
      alpha[t * states + j] = sum + chance.at(t, j);
    }
    __syncthreads();
  }
  C total = alpha[last * states + states - 1];
  if (s.labels) total = either(total, alpha[last * states + states - 2]);
  const bool possible = isfinite(total);
  if (threadIdx.x == 0) loss[blockIdx.x] = possible ? -total : C(0);
  __syncthreads();
  for (long long t = last; back && possible && t >= 0; --t) {
    const C* old = ahead + ((t + 1) & 1) * all_states + s.states;
    C* beta = ahead + (t & 1) * all_states + s.states;
    for (long long j = threadIdx.x; j < states; j += blockDim.x) {
      C sum = j + 2 < states ? -C(INFINITY) : C(0);
      if (t < last) {
        sum = old[j] + chance.at(t + 1, j);
        if (j + 1 < states) sum = either(sum, old[j + 1] + chance.at(t + 1, j + 1));
        if (j + 2 < states && chance.skips(j + 2)) sum = either(sum, old[j + 2] + chance.at(t + 1, j + 2));
      }
      beta[j] = sum;
      alpha[t * states + j] = exp(alpha[t * states + j] + sum - total);
    }
    __syncthreads();
  }
  for (long long i = threadIdx.x; back && !possible && i < s.steps * states; i += blockDim.x) alpha[i] = C(-1);
}

// A block for each row; `owners` has its sequence, or -1. Where a way is impossible, ctc_paths left -1.
template <class C, class I>
__global__ void ctc_shares(const C* x, const C* top, const C* size, const I* labels, const long long* sequences,
                           const long long* owners, const C* ways, const long long* order, C* out, long long stride,
                           long long classes, long long blank) {
  const long long row = blockIdx.x, owner = owners[row];
  C* mine = out + row * classes;
  const ctc_sequence s = reinterpret_cast<const ctc_sequence*>(sequences)[owner < 0 ? 0 : owner];
  const C* spent = ways + s.ways + (row - s.row) / stride * (2 * s.labels + 1);
  if (owner < 0 || spent[0] < C(0)) {
    for (long long k = threadIdx.x; k < classes; k += blockDim.x) mine[k] = C(0);
    return;
  }
  const C high = top[row], all = size[row];
  for (long long k = threadIdx.x; k < classes; k += blockDim.x) mine[k] = exp(x[row * classes + k] - high - all);
  const I* label = labels + s.label;
  const long long* at = order + s.states;
  C blanks = 0;
  for (long long k = threadIdx.x; k <= s.labels; k += blockDim.x) {
    blanks += spent[2 * k];
    if (k < s.labels && label[k] == blank) blanks += spent[2 * k + 1];
  }
  blanks = over_block<join::sum>(blanks);  // whose barriers also see to it that all shares are written
  if (threadIdx.x == 0) mine[blank] -= blanks;
  for (long long k = threadIdx.x; k < s.labels; k += blockDim.x) {
    const I named = label[at[k]];
    if (named == blank || (k && label[at[k - 1]] == named)) continue;
    C sum = 0;
    for (long long i = k; i < s.labels && label[at[i]] == named; ++i) sum += spent[2 * at[i] + 1];
    mine[named] -= sum;
  }
}

// The gradient for that of the loss: out = kept · g / scale of the row's sequence.
template <class T>
__global__ void ctc_scaled(const T* kept, const T* g, const wide_t<T>* scale, const long long* owners, T* out,
                           long long width, long long rows) {
  EACH_ROW(r, rows) {
    const wide_t<T> share = up<T>(g[owners[r]]) / scale[owners[r]];
    ALONG(j, width) out[r * width + j] = down<T>(up<T>(kept[r * width + j]) * share);
  }
}
