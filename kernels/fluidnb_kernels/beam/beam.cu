// Beam search: the best candidates of each source, and whole sentences followed back through their parents.
//
// beam_select scans the candidates of a source once for each that it keeps, a block for a source: beam_size
// reads of every score, all but the first from caches. Candidates have a strict order, so the next one is the first
// behind the one found last, and nothing is marked. beam_write and gather_tree read and write each element once; all
// three are small, and bound by what a launch costs.
//
// Candidates of a row are adjacent. A row that has ended is one candidate, itself, where scores so far are known.
#include "reduce.cuh"

// ---- one step

template <class T> struct beam_step {
  const long long* last;  // the last word of each row
  const T *before, *scores;
  long long width, end;
  int accumulated;
  __device__ __forceinline__ bool ended(long long row) const { return last[row] == end; }
  __device__ __forceinline__ wide_t<T> score(long long row, long long column) const {
    typedef wide_t<T> C;
    const C now = up<T>(scores[row * width + column]);
    if (!before) return now;
    return ended(row) ? up<T>(before[row]) : accumulated ? now : up<T>(before[row]) + log(now);
  }
};

// A candidate by its place in the order of those that score alike; -1 for none.
template <class C> struct beam_pick { C score; long long at; };
template <class C> __device__ __forceinline__ beam_pick<C> across(beam_pick<C> x, int lanes) {
  beam_pick<C> s = {across(x.score, lanes), across(x.at, lanes)};
  return s;
}
// Whether a comes before b; a score that is no number comes last.
template <class C> __device__ __forceinline__ bool sooner(beam_pick<C> a, beam_pick<C> b) {
  if (a.score > b.score || (b.score != b.score && a.score == a.score)) return true;
  if (a.score < b.score || (a.score != a.score && b.score == b.score)) return false;
  return a.at < b.at;
}
namespace join {
struct sooner_one {
  template <class S> static __device__ __forceinline__ S none() {
    S s;
    s.score = 0;
    s.at = -1;
    return s;
  }
  template <class S> static __device__ __forceinline__ S both(S a, S b) {
    return a.at < 0 ? b : b.at < 0 || sooner(a, b) ? a : b;
  }
};
}  // namespace join

// picks [sources, beam]: candidates counted over all rows, the best first, -1 for none; counts [rows]: how many of a row.
template <class T>
__global__ void beam_select(const long long* last, const T* before, const T* scores, const long long* sources,
                            long long* picks, long long* counts, long long width, long long end, int accumulated,
                            long long beam) {
  typedef wide_t<T> C;
  const beam_step<T> step = {last, before, scores, width, end, accumulated};
  const long long first = sources[blockIdx.x], behind = sources[blockIdx.x + 1], n = (behind - first) * width;
  long long* mine = picks + blockIdx.x * beam;
  beam_pick<C> found = join::sooner_one::none<beam_pick<C>>();
  bool going_on = !before;
  for (long long k = 0; k < beam; ++k) {
    beam_pick<C> best = join::sooner_one::none<beam_pick<C>>();
    if (k == 0 || found.at >= 0)
      for (long long at = threadIdx.x; at < n; at += blockDim.x) {
        // of equal scores the later row wins where scores so far are known, else the earlier one
        const long long row = before ? behind - 1 - at / width : first + at / width, column = at % width;
        if (before && column && step.ended(row)) continue;
        const beam_pick<C> one = {step.score(row, column), at};
        if (k == 0 || sooner(found, one)) best = join::sooner_one::both(best, one);
      }
    found = over_block<join::sooner_one>(best);
    long long row = 0;
    if (found.at >= 0) {
      row = before ? behind - 1 - found.at / width : first + found.at / width;
      going_on = going_on || !step.ended(row);
    }
    const bool kept = found.at >= 0 && (before || !step.ended(row));
    if (threadIdx.x == 0) mine[k] = kept ? row * width + found.at % width : -1;
  }
  __syncthreads();
  // a source whose sentences have all ended is done
  if (!going_on)
    for (long long k = threadIdx.x; k < beam; k += blockDim.x) mine[k] = -1;
  __syncthreads();
  for (long long row = first + threadIdx.x; row < behind; row += blockDim.x) {
    long long count = 0;
    for (long long k = 0; k < beam; ++k) count += mine[k] >= 0 && mine[k] / width == row;
    counts[row] = count;
  }
}

// What was picked, by rows: the best of a row first, or the smallest word where scores so far are not known.
template <class T>
__global__ void beam_write(const long long* last, const T* before, const T* scores, const long long* words,
                           const long long* picks, const long long* starts, long long* ids, T* out, int* parents,
                           long long width, long long end, int accumulated, long long beam) {
  const beam_step<T> step = {last, before, scores, width, end, accumulated};
  const long long* mine = picks + blockIdx.x * beam;
  for (long long k = threadIdx.x; k < beam; k += blockDim.x) {
    if (mine[k] < 0) continue;
    const long long row = mine[k] / width, said = words ? words[mine[k]] : mine[k] % width;
    long long at = starts[blockIdx.x];
    for (long long i = 0; i < beam; ++i) {
      if (mine[i] < 0) continue;
      const long long other = mine[i] / width, word = words ? words[mine[i]] : mine[i] % width;
      const bool smaller = !before && word != said ? word < said : i < k;
      at += other < row || (other == row && smaller);
    }
    if (ids) ids[at] = before && step.ended(row) ? end : said;
    if (out) out[at] = down<T>(step.score(row, mine[k] % width));
    if (parents) parents[at] = int(row);
  }
}

// ---- whole sentences: each beam followed back from its last step

template <class I>
__global__ void gather_tree(const I* ids, const I* parents, I* out, long long steps, long long beams, long long count) {
  EACH(i, 0, count) {
    const long long first = i / beams * beams;
    long long beam = i - first;
    for (long long t = steps - 1; t >= 0; --t) {
      const long long at = t * count + first + beam;
      out[t * count + i] = ids[at];
      beam = parents[at];
      if (beam < 0) beam += beams;
      if (t && (beam < 0 || beam >= beams)) __trap();
    }
  }
}
