// Recurrent networks: rows taken into the order of time steps, and what a step does beside its products of matrices.
//
// Sequences are sorted by length, so that a step's rows are adjacent (see batches.py). A step of an LSTM is one
// product and lstm_step: 4 elements read and written in the gates, 1 read and 3 written for each of the cell. A
// GRU's is two products, gru_gates and gru_state. Backward it is one product and lstm_back, or two and gru_back and
// gru_reset_back; the weights' gradients come from one product over all steps. All kernels here aim at the bandwidth
// of a device copy; steps are small, so what is launched for one counts most.
//
// Networks are computed in float or double; half precision is read and written at both ends. Gates are columns of a
// row [parts · width]. Activations come by number: 0 identity, 1 sigmoid, 2 tanh, 3 relu.
#include "reduce.cuh"
#include "row_grid.cuh"

template <class C> __device__ __forceinline__ C logistic(C x) { return C(1) / (C(1) + exp(-x)); }
template <class C> __device__ __forceinline__ C activated(C x, int kind) {
  return kind == 1 ? logistic(x) : kind == 2 ? tanh(x) : kind == 3 && x <= C(0) ? C(0) : x;
}
// The slope of an activation where it gave y.
template <class C> __device__ __forceinline__ C slope(C y, int kind) {
  return kind == 1 ? (C(1) - y) * y : kind == 2 ? C(1) - y * y : kind == 3 && !(y > C(0)) ? C(0) : C(1);
}
template <class C> __device__ __forceinline__ C clipped(C x, C most) { return x < -most ? -most : x > most ? most : x; }

// ---- rows in another order: out[r] = x[from[r]] + bias, or initial[-1 - from[r]], or zeros where there is none

template <class T, class U>
__global__ void gathered(const T* x, const T* initial, const T* bias, const long long* from, U* out, long long width,
                         long long rows) {
  EACH_ROW(r, rows) {
    const long long at = from[r];
    const T* row = at >= 0 ? x + at * width : initial ? initial + (-1 - at) * width : nullptr;
    ALONG(j, width) {
      wide_t<T> v = row ? up<T>(row[j]) : wide_t<T>(0);
      if (bias) v += up<T>(bias[j]);
      out[r * width + j] = down<U>(v);
    }
  }
}

// ---- lstm: columns candidate, input, forget, output

template <class C>
__global__ void lstm_step(C* gates, const C* old, const C* peepholes, C* cells, C* seen, C* hidden, int candidate,
                          int gate, int out, double clip, long long width, long long rows) {
  EACH_ROW(r, rows) ALONG(j, width) {
    C* z = gates + r * 4 * width + j;
    const long long i = r * width + j;
    const C before = old ? old[i] : C(0);
    C into = z[width], forget = z[2 * width], output = z[3 * width];
    if (peepholes) {
      into += before * peepholes[j];
      forget += before * peepholes[width + j];
    }
    const C fresh = activated(z[0], candidate);
    into = activated(into, gate);
    forget = activated(forget, gate);
    C cell = fresh * into + before * forget;
    if (clip != 0) cell = clipped(cell, C(clip));
    if (peepholes) output += cell * peepholes[2 * width + j];
    output = activated(output, gate);
    const C looked = activated(cell, out);
    z[0] = fresh;
    z[width] = into;
    z[2 * width] = forget;
    z[3 * width] = output;
    cells[i] = cell;
    seen[i] = looked;
    hidden[i] = looked * output;
  }
}

// `carried` holds the gradients of the first `going_on` cells from the step behind, and gets those of the old cells.
template <class C>
__global__ void lstm_back(const C* gates, const C* dhidden, const C* old, const C* cells, const C* seen,
                          const C* peepholes, C* carried, C* dgates, int candidate, int gate, int out, double clip,
                          long long going_on, long long width, long long rows) {
  EACH_ROW(r, rows) ALONG(j, width) {
    const C* z = gates + r * 4 * width + j;
    C* d = dgates + r * 4 * width + j;
    const long long i = r * width + j;
    const C fresh = z[0], into = z[width], forget = z[2 * width], output = z[3 * width], dh = dhidden[i];
    const C doutput = dh * seen[i] * slope(output, gate);
    C dcell = dh * output * slope(seen[i], out);
    if (r < going_on) dcell += carried[i];
    if (peepholes) dcell += doutput * peepholes[2 * width + j];
    if (clip != 0 && !(fabs(cells[i]) < C(clip))) dcell = C(0);
    const C dinto = dcell * fresh * slope(into, gate), dforget = dcell * old[i] * slope(forget, gate);
    d[0] = dcell * into * slope(fresh, candidate);
    d[width] = dinto;
    d[2 * width] = dforget;
    d[3 * width] = doutput;
    C back = dcell * forget;
    if (peepholes) back += dinto * peepholes[j] + dforget * peepholes[width + j];
    carried[i] = back;
  }
}

// What a projection gave, activated and clipped in place, and the gradient in front of both.
template <class C> __global__ void projected(C* states, int kind, double clip, long long n) {
  EACH(i, 0, n) {
    const C y = activated(states[i], kind);
    states[i] = clip != 0 ? clipped(y, C(clip)) : y;
  }
}
template <class C> __global__ void projected_back(C* dstates, const C* states, int kind, double clip, long long n) {
  EACH(i, 0, n) {
    const C y = states[i];
    dstates[i] = clip != 0 && !(fabs(y) < C(clip)) ? C(0) : dstates[i] * slope(y, kind);
  }
}

// ---- lstm_unit: one step; columns input, forget, output, candidate. Moves 5 elements in and 2 out for each cell.

template <class T>
__global__ void lstm_unit(const T* x, const T* old, T* cells, T* hidden, double bias, long long width, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) ALONG(j, width) {
    const T* z = x + r * 4 * width + j;
    const long long i = r * width + j;
    const C cell = logistic(up<T>(z[width]) + C(bias)) * up<T>(old[i]) + logistic(up<T>(z[0])) * tanh(up<T>(z[3 * width]));
    if (cells) cells[i] = down<T>(cell);
    if (hidden) hidden[i] = down<T>(logistic(up<T>(z[2 * width])) * tanh(cell));
  }
}
template <class T>
__global__ void lstm_unit_back(const T* x, const T* old, const T* cells, const T* dcells, const T* dhidden, T* dx,
                               T* dold, double bias, long long width, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) ALONG(j, width) {
    const T* z = x + r * 4 * width + j;
    const long long i = r * width + j;
    const C into = logistic(up<T>(z[0])), forget = logistic(up<T>(z[width]) + C(bias));
    const C output = logistic(up<T>(z[2 * width])), fresh = tanh(up<T>(z[3 * width])), seen = tanh(up<T>(cells[i]));
    const C dh = dhidden ? up<T>(dhidden[i]) : C(0);
    const C dcell = dh * output * (C(1) - seen * seen) + (dcells ? up<T>(dcells[i]) : C(0));
    if (dold) dold[i] = down<T>(dcell * forget);
    if (!dx) continue;
    T* d = dx + r * 4 * width + j;
    d[0] = down<T>(dcell * fresh * slope(into, 1));
    d[width] = down<T>(dcell * up<T>(old[i]) * slope(forget, 1));
    d[2 * width] = down<T>(dh * seen * slope(output, 1));
    d[3 * width] = down<T>(dcell * into * slope(fresh, 2));
  }
}

// ---- gru: columns update, reset, candidate. With `origin` the update gate is the share of the old state.

template <class C>
__global__ void gru_gates(C* gates, const C* old, C* reset, int gate, long long width, long long rows) {
  EACH_ROW(r, rows) ALONG(j, width) {
    C* z = gates + r * 3 * width + j;
    const long long i = r * width + j;
    const C kept = activated(z[width], gate);
    z[0] = activated(z[0], gate);
    z[width] = kept;
    reset[i] = old ? old[i] * kept : C(0);
  }
}
template <class C>
__global__ void gru_state(C* gates, const C* old, C* hidden, int candidate, int origin, long long width, long long rows) {
  EACH_ROW(r, rows) ALONG(j, width) {
    C* z = gates + r * 3 * width + j;
    const long long i = r * width + j;
    const C fresh = activated(z[2 * width], candidate), before = old ? old[i] : C(0);
    const C one = origin ? before : fresh, other = origin ? fresh : before;
    z[2 * width] = fresh;
    hidden[i] = (one - other) * z[0] + other;
  }
}

// Gradients of update gate and candidate; then, with that of what the reset gate leaves, of reset gate and old state.
template <class C>
__global__ void gru_back(const C* gates, const C* old, const C* dhidden, C* dgates, int gate, int candidate, int origin,
                         long long width, long long rows) {
  EACH_ROW(r, rows) ALONG(j, width) {
    const C* z = gates + r * 3 * width + j;
    C* d = dgates + r * 3 * width + j;
    const long long i = r * width + j;
    const C update = z[0], fresh = z[2 * width], more = fresh - old[i], dh = dhidden[i];
    d[0] = dh * (origin ? -more : more) * slope(update, gate);
    d[2 * width] = dh * (origin ? C(1) - update : update) * slope(fresh, candidate);
  }
}
template <class C>
__global__ void gru_reset_back(const C* gates, const C* old, const C* dhidden, const C* dreset, C* dgates, C* dold,
                               int gate, int origin, int first, long long width, long long rows) {
  EACH_ROW(r, rows) ALONG(j, width) {
    const C* z = gates + r * 3 * width + j;
    const long long i = r * width + j;
    const C update = z[0], kept = z[width], d = dreset[i];
    dgates[r * 3 * width + width + j] = d * old[i] * slope(kept, gate);
    const C share = dhidden[i] * (origin ? update : C(1) - update) + d * kept;
    dold[i] = first ? share : dold[i] + share;
  }
}

// ---- the bias: sums over all rows of its columns; behind them those of the peepholes, which see old or new cells

template <class C>
__global__ void bias_back(const C* dgates, const C* old, const C* cells, C* out, long long columns, long long width,
                          long long lines, long long n, long long, int way) {
  EACH_LINE(line, lines, way) {
    C s = 0;
    if (line < columns) {
      EACH_MEMBER(k, n, way) s += dgates[k * columns + line];
    } else if (line < lines) {
      const long long part = (line - columns) / width, j = (line - columns) % width;
      const C *d = dgates + (part + 1) * width + j, *cell = (part < 2 ? old : cells) + j;
      EACH_MEMBER(k, n, way) s += d[k * columns] * cell[k * width];
    }
    s = over_line<join::sum>(s, way);
    if (line < lines && member(way) == 0) out[line] = s;
  }
}
