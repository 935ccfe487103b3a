// Losses over a few rows of a tall table for each row of x: the nodes on a path through a tree, or classes that are drawn.
//
// A row of x [rows, width] meets `many` rows of the table; `picks` [rows, many] names them. Forward reads a row of the
// table for each pick once, coalesced, and aims at the bandwidth of reading; x comes from caches. What a pick costs is
// computed from one number, `dots`, beside which it is small. The gradient of x gathers rows of the table again; that
// of the table is added with atomics when it is dense (2 reads and 1 write for an element, in an order that may change
// from run to run), and gathered row by row in a fixed order when it comes as SelectedRows. A pick below 0 is none; one
// beyond the table, or a label that is no class, makes the cost of its row NaN: a kernel cannot raise.
#include "reduce.cuh"
#include "row_grid.cuh"

// ---- picks

// The nodes and decisions on the path to a class: the bits of label + classes, the last one first.
extern "C" __global__ void class_paths(const long long* labels, long long* picks, long long* bits, long long classes,
                                long long many, long long count) {
  EACH(i, 0, count) {
    long long label = labels[i / many], step = i % many, code = label + classes;
    bool known = label >= 0 && label < classes;
    picks[i] = known ? (code >> (step + 1)) - 1 : 0x7fffffffffffffffll;
    bits[i] = known ? code >> step & 1 : 0;
  }
}

// The true classes of each row, then samples; these are the same for all rows where their step is 0.
extern "C" __global__ void joined(const long long* labels, const long long* samples, long long* picks, long long trues,
                                  long long many, long long step, long long count) {
  EACH(i, 0, count) {
    long long row = i / many, k = i % many;
    picks[i] = k < trues ? labels[row * trues + k] : samples[row * step + k - trues];
  }
}

// dots = x · table[pick] + bias[pick], a warp for each; 0 where there is no pick
template <class T>
__global__ void dots(const T* x, const T* table, const T* bias, const long long* picks, wide_t<T>* out, long long many,
                     long long height, long long width, long long count) {
  typedef wide_t<T> C;
  EACH_LINE(i, count, WARPS) if (i < count) {
    long long pick = picks[i];
    C s = pick < height ? C(0) : C(NAN);
    if (pick >= 0 && pick < height) {
      const T *a = x + i / many * width, *b = table + pick * width;
      EACH_MEMBER(j, width, WARPS) s += up<T>(a[j]) * up<T>(b[j]);
    }
    s = over_warp<join::sum>(s);
    if (bias && pick >= 0 && pick < height) s += up<T>(bias[pick]);
    if (member(WARPS) == 0) out[i] = s;
  }
}

// ---- hierarchical_sigmoid

// pre = log(1 + exp(z)), y = the sum over a row of pre - bit · z, with z between -40 and 40
template <class T>
__global__ void path_cost(const wide_t<T>* dots, const long long* picks, const long long* bits, T* pre, T* y,
                         long long lines, long long n, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    C total = 0;
    EACH_MEMBER(k, line < lines ? n : 0, way) {
      long long i = line * n + k;
      C z = dots[i], bit = picks[i] < 0 ? C(0) : C(bits[i]), far = 40;
      z = z < -far ? -far : z > far ? far : z;
      C p = log1p(exp(z));
      pre[i] = down<T>(p);
      total += p - bit * z;
    }
    total = over_line<join::sum>(total, way);
    if (line < lines && member(way) == 0) y[line] = down<T>(total);
  }
}

template <class T>
__global__ void path_slopes(const T* pre, const long long* picks, const long long* bits, const T* g, wide_t<T>* slopes,
                           long long many, long long count) {
  typedef wide_t<T> C;
  EACH(i, 0, count) {
    C slope = (C(1) - exp(-up<T>(pre[i])) - C(bits[i])) * up<T>(g[i / many]);
    slopes[i] = picks[i] < 0 ? C(0) : slope;
  }
}

// ---- nce

enum sampler { UNIFORM, LOG_UNIFORM, CUSTOM };
// How likely a class is drawn; `scale` is how many classes there are, or the logarithm of that.
template <class C, class T>
__device__ __forceinline__ C chance(long long pick, int kind, double scale, const T* custom, long long classes) {
  if (pick < 0 || pick >= classes) return C(NAN);
  return kind == UNIFORM ? C(1 / scale) : kind == CUSTOM ? up<T>(custom[pick]) : log1p(C(1) / C(pick + 1)) / C(scale);
}

// The first `trues` of a row's classes are true ones. A row counts `weights`, null where all count 1.
template <class T>
__global__ void nce_cost(const wide_t<T>* dots, const long long* picks, const T* custom, const T* weights, T* logits, T* y,
                         long long trues, int kind, double scale, double samples, long long classes, long long lines,
                         long long n, long long inner, int way) {
  typedef wide_t<T> C;
  EACH_LINE(line, lines, way) {
    C total = 0;
    EACH_MEMBER(k, line < lines ? n : 0, way) {
      long long i = line * n + k;
      C o = C(1) / (C(1) + exp(-dots[i])), q = chance<C>(picks[i], kind, scale, custom, classes) * C(samples);
      logits[i] = down<T>(o);
      total -= log((k < trues ? o : q) / (o + q));
    }
    total = over_line<join::sum>(total, way);
    if (line < lines && member(way) == 0) y[line] = down<T>(weights ? total * up<T>(weights[line]) : total);
  }
}

template <class T>
__global__ void nce_slopes(const T* logits, const long long* picks, const T* custom, const T* weights, const T* g,
                           wide_t<T>* slopes, long long trues, int kind, double scale, double samples, long long classes,
                           long long many, long long count) {
  typedef wide_t<T> C;
  EACH(i, 0, count) {
    long long row = i / many;
    C o = up<T>(logits[i]), q = chance<C>(picks[i], kind, scale, custom, classes) * C(samples);
    C slope = (i % many < trues ? q * (o - C(1)) : o * (C(1) - o)) / (o + q) * up<T>(g[row]);
    slopes[i] = weights ? slope * up<T>(weights[row]) : slope;
  }
}

// ---- gradients of dots

// dx[row] = the sum of slope · table[pick], in order
template <class T>
__global__ void dots_grad_x(const wide_t<T>* slopes, const long long* picks, const T* table, T* dx, long long many,
                            long long height, long long width, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(row, rows) ALONG(j, width) {
    C s = 0;
    for (long long i = row * many; i < (row + 1) * many; ++i) {
      long long pick = picks[i];
      if (pick >= height) s = NAN;
      else if (pick >= 0) s += slopes[i] * up<T>(table[pick * width + j]);
    }
    dx[row * width + j] = down<T>(s);
  }
}

// total[pick] += slope · x[row]; x is null where it is 1, as for a bias
template <class T>
__global__ void dots_grad_table(const wide_t<T>* slopes, const long long* picks, const T* x, wide_t<T>* total,
                                long long many, long long height, long long width, long long rows) {
  EACH_ROW(i, rows) {
    long long pick = picks[i];
    if (pick < 0 || pick >= height) continue;
    wide_t<T> slope = slopes[i];
    ALONG(j, width) atomicAdd(total + pick * width + j, x ? slope * up<T>(x[i / many * width + j]) : slope);
  }
}

// The same for rows that have a gradient, one after the other: `order` holds the picks of row r up to ends[r].
template <class T>
__global__ void dots_grad_rows(const wide_t<T>* slopes, const long long* order, const long long* ends, const T* x, T* out,
                               long long many, long long width, long long rows) {
  EACH_ROW(r, rows) ALONG(j, width) {
    wide_t<T> s = 0;
    for (long long k = r ? ends[r - 1] : 0; k < ends[r]; ++k)
      s += slopes[order[k]] * up<T>(x[order[k] / many * width + j]);
    out[r * width + j] = down<T>(s);
  }
}

// ---- sample_logits

// How often each class is expected among samples drawn by a log-uniform law; the number of tries follows them.
template <class T>
__global__ void expected(const long long* picks, const long long* samples, T* out, long long classes, long long size,
                         long long count) {
  long long tries = samples[size];
  double scale = log(double(classes) + 1);
  EACH(i, 0, count) {
    double p = chance<double>(picks[i], LOG_UNIFORM, scale, static_cast<const double*>(nullptr), classes);
    out[i] = T(size == tries ? p * double(size) : -expm1(double(tries) * log1p(p > 1 ? -1. : -p)));
  }
}

// y = x[pick] - log(chance), and minus infinity for samples that are true classes of their row where `hits` says so;
// 1e20 represents infinity
template <class T>
__global__ void sampled_logits(const T* x, const long long* picks, const T* chances, T* y, long long trues, int hits,
                               long long many, long long classes, long long count) {
  const T far = T(1e20);
  EACH(i, 0, count) {
    long long pick = picks[i], row = i / many;
    T v = pick < 0 || pick >= classes ? T(NAN) : x[row * classes + pick], q = log(chances[i]);
    if (hits && i % many >= trues)
      for (long long k = row * many; k < row * many + trues; ++k)
        if (picks[k] == pick) {
          v -= far;
          break;
        }
    v -= q < -far ? -far : q > far ? far : q;
    y[i] = v < -far ? -far : v > far ? far : v;
  }
}
