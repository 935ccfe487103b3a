// The feature map of a YOLO network: [n, anchors, 5 + classes, h, w], read as boxes and scores, or held against objects.
//
// Reading moves each element of the map once, but those of places and confidence, which several threads of a warp ask
// for together; scores go through tiles of shared memory, so that both sides of that transposition are coalesced: both
// aim at the bandwidth of a device copy. The loss reads places and confidences of the map, and the classes where objects
// are; what a place is to be is gathered over the objects of its image, the last one counts. Sums have a fixed order.
// The gradient writes each element of the map once, then those where objects are. Nothing is added with atomics.
#include "exact.cuh"
#include "reduce.cuh"
#include "row_grid.cuh"

template <class C> __device__ __forceinline__ C sigmoid(C x) { return 1 / (1 + exp(-x)); }
template <class C> __device__ __forceinline__ C largest(C a, C b) { return join::largest::both(a, b); }
template <class C> __device__ __forceinline__ C smallest(C a, C b) { return join::smallest::both(a, b); }

// ---- reading

// How sure a map is of the box of an anchor at a place; with `aware` the map begins with a predicted overlap for each.
template <class T>
__device__ __forceinline__ wide_t<T> confidence(const T* of_anchor, const T* overlap, long long plane, long long place,
                                                int aware, double power) {
  typedef wide_t<T> C;
  const C sure = sigmoid(up<T>(of_anchor[4 * plane + place]));
  if (!aware) return sure;
  return pow(sure, C(1 - power)) * pow(sigmoid(up<T>(overlap[place])), C(power));
}

// Row r: anchor r % count of image r / count. Where its elements and its predicted overlaps are.
#define ANCHOR_OF(r)                                                              \
  const long long n = (r) / count, anchor = (r) - n * count, plane = h * w;       \
  const T* image = x + n * count * (fields + (aware ? 1 : 0)) * plane;            \
  const T* own = image + ((aware ? count : 0) + anchor * fields) * plane;         \
  const T* overlap = image + anchor * plane;

// A thread makes one side of a box. images [n, 2] are heights and widths.
template <class T>
__global__ void yolo_boxes(const T* x, const wide_t<T>* images, const wide_t<T>* anchors, T* boxes, long long count,
                           long long fields, long long h, long long w, long long ratio, double least, int inside,
                           double spread, int aware, double power, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    ANCHOR_OF(r)
    ALONG(e, 4 * plane) {
      const long long place = e >> 2, row = quotient(place, w);
      const int k = int(e & 3), below = k & 1;
      const C size = images[2 * n + 1 - below], cell = C(below ? row : place - row * w), cells = C(below ? h : w);
      const C middle =
          (cell + sigmoid(up<T>(own[below * plane + place])) * C(spread) + C(-0.5 * (spread - 1))) * size / cells;
      const C half = exp(up<T>(own[(2 + below) * plane + place])) * anchors[2 * anchor + below] * size /
                     C(ratio * (below ? h : w)) / 2;
      C side = k < 2 ? middle - half : middle + half;
      if (inside) side = k < 2 ? largest(side, C(0)) : smallest(side, size - 1);
      const bool kept = confidence(own, overlap, plane, place, aware, power) >= C(least);
      boxes[r * 4 * plane + e] = down<T>(kept ? side : C(0));
    }
  }
}

const int TILE = 32, STRIPE = 8;

template <class T>
__global__ void __launch_bounds__(TILE * STRIPE)
    yolo_scores(const T* x, T* scores, long long count, long long fields, long long h, long long w, double least,
                int aware, double power, long long tiles_of_places, long long tiles_of_classes, long long tiles) {
  typedef wide_t<T> C;
  __shared__ C tile[TILE][TILE + 1];
  const long long classes = fields - 5;
  for (long long t = blockIdx.x; t < tiles; t += gridDim.x) {
    const long long r = t / (tiles_of_places * tiles_of_classes), left = t - r * tiles_of_places * tiles_of_classes;
    const long long c0 = left / tiles_of_places * TILE, p0 = left % tiles_of_places * TILE;
    ANCHOR_OF(r)
    const long long place = p0 + threadIdx.x;
    if (place < plane) {
      const C sure = confidence(own, overlap, plane, place, aware, power);
      for (int k = threadIdx.y; k < TILE && c0 + k < classes; k += STRIPE) {
        const C rate = sigmoid(up<T>(own[(5 + c0 + k) * plane + place])) * sure;
        tile[threadIdx.x][k] = sure >= C(least) ? rate : C(0);
      }
    }
    __syncthreads();
    const int wide = int(classes - c0 < TILE ? classes - c0 : TILE), high = int(plane - p0 < TILE ? plane - p0 : TILE);
    for (int e = threadIdx.x + TILE * threadIdx.y; e < wide * high; e += TILE * STRIPE) {
      const int p = e / wide, c = e - p * wide;
      scores[(r * plane + p0 + p) * classes + c0 + c] = down<T>(tile[p][c]);
    }
    __syncthreads();
  }
}

// ---- learning: boxes of objects [n, objects, 4] are middle and size as parts of the image

template <class C>
__device__ __forceinline__ C overlap_of(C x, C y, C wide, C high, C to_x, C to_y, C to_wide, C to_high) {
  const C across = smallest(x + wide / 2, to_x + to_wide / 2) - largest(x - wide / 2, to_x - to_wide / 2);
  const C along = smallest(y + high / 2, to_y + to_high / 2) - largest(y - high / 2, to_y - to_high / 2);
  const C shared = across < 0 || along < 0 ? C(0) : times(across, along);
  return shared / (times(wide, high) + times(to_wide, to_high) - shared);
}
template <class C> __device__ __forceinline__ bool is_object(const C* box) {
  return box[2] >= C(1e-6) && box[3] >= C(1e-6);
}
// The place of an object's middle; -1 where it is outside the image.
template <class C> __device__ __forceinline__ long long place_of(const C* box, long long h, long long w) {
  const C x = times(box[0], C(w)), y = times(box[1], C(h));
  return x > -1 && y > -1 && x < C(w) && y < C(h) ? (long long)y * w + (long long)x : -1;
}

// For each object the anchor of this map that learns it: the one of all anchors that is most like it in size.
template <class C>
__global__ void matched(const C* boxes, const C* anchors, const int* place, int* match, long long anchor_count,
                        double input, long long count) {
  EACH(i, 0, count) {
    const C* box = boxes + 4 * i;
    long long best = 0;
    C most = -1;
    for (long long a = 0; a < anchor_count; a++) {
      const C wide = anchors[2 * a] / C(input), high = anchors[2 * a + 1] / C(input);
      const C found = overlap_of(C(0), C(0), box[2], box[3], C(0), C(0), wide, high);
      if (found > most) {
        most = found;
        best = a;
      }
    }
    match[i] = is_object(box) ? place[best] : -1;
  }
}

// Row r: an anchor of an image. What each place is to be: the score of its object, 0, or -1 for what does not count.
template <class T>
__global__ void objects(const T* x, const wide_t<T>* boxes, const wide_t<T>* rates, const int* match,
                        const wide_t<T>* anchors, T* out, long long count, long long fields, long long h, long long w,
                        double input, double spread, double limit, long long many, long long rows) {
  typedef wide_t<T> C;
  const long long plane = h * w;
  EACH_ROW(r, rows) {
    const long long n = r / count, anchor = r - n * count;
    const T* own = x + r * fields * plane;
    ALONG(place, plane) {
      const long long row = quotient(place, w);
      const C move = C(-0.5 * (spread - 1));
      const C across = (C(place - row * w) + sigmoid(up<T>(own[place])) * C(spread) + move) / C(h);
      const C along = (C(row) + sigmoid(up<T>(own[plane + place])) * C(spread) + move) / C(h);
      const C wide = exp(up<T>(own[2 * plane + place])) * anchors[2 * anchor] / C(input);
      const C high = exp(up<T>(own[3 * plane + place])) * anchors[2 * anchor + 1] / C(input);
      C best = 0, score = 0;
      bool has = false;
      for (long long t = n * many; t < (n + 1) * many; t++) {
        const C* box = boxes + 4 * t;
        if (!is_object(box)) continue;
        best = largest(best, overlap_of(across, along, wide, high, box[0], box[1], box[2], box[3]));
        if (match[t] == anchor && place_of(box, h, w) == place) {
          has = true;
          score = rates ? rates[t] : C(1);
        }
      }
      out[r * plane + place] = down<T>(has ? score : best > C(limit) ? C(-1) : C(0));
    }
  }
}

// What element k (0 to 3: x, y, width, height; then classes) of an object's part of the map should be, and its weight.
template <class C> struct target { C value, weight; };
template <class C>
__device__ __forceinline__ target<C> wanted(const C* box, long long label, C score, const C* anchor, long long k,
                                            long long classes, long long h, long long w, double input, double smooth) {
  target<C> out;
  if (k >= 4) {
    out.value = k - 4 == label ? C(1 - smooth) : C(smooth);
    out.weight = label >= 0 && label < classes ? score : C(NAN);
    return out;
  }
  out.weight = (2 - box[2] * box[3]) * score;
  if (k >= 2) {
    out.value = log(times(box[k], C(input)) / anchor[k - 2]);
  } else {
    const C at = times(box[k], C(k ? h : w));
    out.value = at - C((long long)at);
  }
  return out;
}

template <class C> __device__ __forceinline__ C entropy(C x, C label) {
  return (x > 0 ? x : x == x ? C(0) : x) - x * label + log1p(exp(x > 0 ? -x : x));
}

#define OBJECTS                                                                                                     \
  const T *x, const wide_t<T>*boxes, const long long *labels, const wide_t<T>*rates, const int *match,              \
      const wide_t<T>*anchors, const T *sure
#define SIZES \
  long long count, long long fields, long long h, long long w, double input, double smooth, long long many

// A block takes an image. The loss of an object outside its image, or whose label is no class, is no number.
template <class T> __global__ void yolo_loss(OBJECTS, T* loss, SIZES, long long images) {
  typedef wide_t<T> C;
  const long long plane = h * w, classes = fields - 5;
  for (long long n = blockIdx.x; n < images; n += gridDim.x) {
    C total = 0;
    for (long long e = threadIdx.x; e < count * plane; e += blockDim.x) {
      const long long anchor = quotient(e, plane);
      const C is = up<T>(sure[n * count * plane + e]);
      const C seen = up<T>(x[((n * count + anchor) * fields + 4) * plane + e - anchor * plane]);
      if (is > C(1e-5)) total += entropy(seen, C(1)) * is;
      else if (is > C(-0.5)) total += entropy(seen, C(0));
    }
    for (long long e = threadIdx.x; e < many * (4 + classes); e += blockDim.x) {
      const long long i = quotient(e, 4 + classes), t = n * many + i, k = e - i * (4 + classes);
      if (match[t] < 0) continue;
      const long long place = place_of(boxes + 4 * t, h, w);
      const target<C> to = wanted(boxes + 4 * t, labels[t], rates ? rates[t] : C(1), anchors + 2 * match[t], k, classes,
                                  h, w, input, smooth);
      if (place < 0) {
        total = NAN;
        continue;
      }
      const C is = up<T>(x[((n * count + match[t]) * fields + (k < 4 ? k : k + 1)) * plane + place]);
      const C gap = is - to.value;
      total += (k == 2 || k == 3 ? (gap < 0 ? -gap : gap) : entropy(is, to.value)) * to.weight;
    }
    total = over_block<join::sum>(total);
    if (threadIdx.x == 0) loss[n] = down<T>(total);
  }
}

// Row r: a plane of the map. Confidences have slopes everywhere, the others get zeros for now.
template <class T>
__global__ void sure_grad(const T* x, const T* sure, const T* g, T* dx, long long count, long long fields,
                          long long plane, long long rows) {
  typedef wide_t<T> C;
  EACH_ROW(r, rows) {
    const long long a = r / fields;
    const bool counts = r - a * fields == 4;
    const C slope = counts ? up<T>(g[a / count]) : C(0);
    ALONG(p, plane) {
      const C is = counts ? up<T>(sure[a * plane + p]) : C(-1);
      C out = 0;
      if (is > C(-0.5)) {
        const C seen = sigmoid(up<T>(x[r * plane + p]));
        out = (is > C(1e-5) ? (seen - 1) * is : seen) * slope;
      }
      dx[r * plane + p] = down<T>(out);
    }
  }
}

// A block takes an object, and with it those behind it that have the same place; the first of them writes for all.
template <class T> __global__ void object_grad(OBJECTS, const T* g, T* dx, SIZES, long long all) {
  typedef wide_t<T> C;
  const long long plane = h * w, classes = fields - 5;
  for (long long t = blockIdx.x; t < all; t += gridDim.x) {
    const long long n = t / many, place = place_of(boxes + 4 * t, h, w);
    if (match[t] >= count) __trap();
    bool first = match[t] >= 0 && place >= 0;
    for (long long o = n * many; o < t && first; o++)
      first = match[o] != match[t] || place_of(boxes + 4 * o, h, w) != place;
    if (!first) continue;
    for (long long k = threadIdx.x; k < 4 + classes; k += blockDim.x) {
      const long long at = ((n * count + match[t]) * fields + (k < 4 ? k : k + 1)) * plane + place;
      const C is = up<T>(x[at]);
      C total = 0;
      for (long long o = t; o < (n + 1) * many; o++) {
        if (match[o] != match[t] || place_of(boxes + 4 * o, h, w) != place) continue;
        const target<C> to = wanted(boxes + 4 * o, labels[o], rates ? rates[o] : C(1), anchors + 2 * match[o], k,
                                    classes, h, w, input, smooth);
        const C gap = is - to.value, turn = gap > 0 ? C(1) : gap < 0 ? C(-1) : gap;
        total += (k == 2 || k == 3 ? turn : sigmoid(is) - to.value) * to.weight;
      }
      dx[at] = down<T>(total * up<T>(g[n]));
    }
  }
}
