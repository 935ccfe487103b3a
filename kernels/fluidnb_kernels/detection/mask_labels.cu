// What the masks of regions shall be: which regions learn, which object each of them sees, and its polygons as pixels.
//
// Few numbers make many: what bounds it is writing MaskInt32 once, and the class of a region once more. Outlines are
// drawn by a warp for each mask, in steps of a fifth of a pixel; where one passes the middle of a column, inside and
// outside change from there on, so a mask is the parity of such passings before each pixel, column by column. A region
// whose class is none, or whose image has no object to draw, stops the kernel: there is nothing to give for it.
#include "exact.cuh"
#include "reduce.cuh"

// The image to which an element of a level of a LoD belongs.
__device__ __forceinline__ int owner_of(const int* level, long long i) {
  int n = 0;
  while (i >= level[n + 1]) n++;
  return n;
}

// The regions that learn. level says which regions an image has, rows which masks; region[row] is the number of one.
template <class C>
__global__ void learners(const C* rois, const C* info, const long long* labels, const int* level, const int* rows,
                         int* region, C* chosen, int* numbers, long long count) {
  EACH(r, 0, count) {
    const int n = owner_of(level, r);
    long long before = 0, learners = 0, zero = -1;
    for (long long i = level[n]; i < level[n + 1]; i++) {
      if (labels[i] > 0) learners++;
      if (labels[i] > 0 && i < r) before++;
      if (labels[i] == 0 && zero < 0) zero = i;
    }
    const bool learns = learners ? labels[r] > 0 : r == (zero < 0 ? level[n] : zero);
    if (!learns) continue;
    const long long row = rows[n] + before;
    region[row] = int(r);
    if (numbers) numbers[row] = int(r - level[n]);
    const C scale = info[3 * n + 2];
    for (int k = 0; chosen && k < 4; k++) chosen[4 * row + k] = times(rois[4 * r + k] / scale, scale);
  }
}

// The box around the polygons of each object; right and bottom are above 0.
template <class C>
__global__ void bounds(const C* corners, const int* polygons, const int* starts, C* boxes, double tiny, long long count) {
  EACH(i, 0, count) {
    C* box = boxes + 4 * i;
    for (int k = 0; k < 2; k++) {
      C low = ends<C>::high(), high = ends<C>::low();
      for (long long p = starts[polygons[i]]; p < starts[polygons[i + 1]]; p++) {
        low = join::smallest::both(low, corners[2 * p + k]);
        high = join::largest::both(high, corners[2 * p + k]);
      }
      box[k] = low;
      box[k + 2] = join::largest::both(high, C(tiny));
    }
  }
}

// The object that each learning region overlaps most, of those that count; -1 where the region has no class.
template <class C>
__global__ void seen(const C* rois, const C* info, const long long* labels, const long long* classes,
                     const long long* crowd, const C* boxes, const int* level, const int* objects, const int* region,
                     int* object, long long most_label, long long count) {
  EACH(row, 0, count) {
    const long long r = region[row];
    const int n = owner_of(level, r);
    int best = -1;
    if (labels[r] > 0) {
      C box[4], most = -1;
      for (int k = 0; k < 4; k++) box[k] = rois[4 * r + k] / info[3 * n + 2];
      const C area = times(box[2] - box[0] + 1, box[3] - box[1] + 1);
      for (int i = objects[n]; i < objects[n + 1]; i++) {
        if (!(classes[i] > 0) || crowd[i] != 0) continue;
        const C* other = boxes + 4 * i;
        const C across = join::smallest::both(box[2], other[2]) - join::largest::both(box[0], other[0]) + 1;
        const C down = join::smallest::both(box[3], other[3]) - join::largest::both(box[1], other[1]) + 1;
        const C shared = across > 0 && down > 0 ? times(across, down) : C(0);
        const C whole = area + times(other[2] - other[0] + 1, other[3] - other[1] + 1) - shared;
        const C found = shared > 0 ? shared / whole : C(0);
        if (found > most) {
          most = found;
          best = i;
        }
      }
      if (best < 0 || labels[r] > most_label) __trap();
    }
    object[row] = best;
  }
}

// ---- outlines

const int FINE = 5;

struct edge {
  long long x0, y0, x1, y1, steps;
  bool flat, back;
  double slope;

  // The step `k` of an edge, from its start.
  __device__ __forceinline__ void at(long long k, long long& x, long long& y) const {
    const long long along = back ? steps - k : k;
    const long long major = (flat ? (back ? x1 : x0) : (back ? y1 : y0)) + along;
    const double low = double(flat ? (back ? y1 : y0) : (back ? x1 : x0));
    const long long minor = (long long)(low + times(slope, double(along)) + 0.5);
    x = flat ? major : minor;
    y = flat ? minor : major;
  }
};

template <class C> __device__ __forceinline__ long long fine(C at, C low, C side, long long size) {
  const C pixels = times(at - low, C(size)) / side;
  return (long long)(times(double(FINE), double(pixels)) + (pixels < 0 ? -0.5 : 0.5));
}

template <class C>
__device__ __forceinline__ edge edge_of(const C* from, const C* to, const C* box, long long size) {
  const C wide = box[2] - box[0], high = box[3] - box[1];
  const C side_x = wide < 1 ? C(1) : wide, side_y = high < 1 ? C(1) : high;
  edge e;
  e.x0 = fine(from[0], box[0], side_x, size), e.y0 = fine(from[1], box[1], side_y, size);
  e.x1 = fine(to[0], box[0], side_x, size), e.y1 = fine(to[1], box[1], side_y, size);
  const long long across = e.x1 > e.x0 ? e.x1 - e.x0 : e.x0 - e.x1, down = e.y1 > e.y0 ? e.y1 - e.y0 : e.y0 - e.y1;
  e.flat = across >= down;
  e.steps = e.flat ? across : down;
  e.back = e.flat ? e.x0 > e.x1 : e.y0 > e.y1;
  const double rise = double(e.flat ? e.y1 - e.y0 : e.x1 - e.x0);
  e.slope = (e.back ? -rise : rise) / double(e.steps ? e.steps : 1);
  return e;
}

// A warp takes a mask. passings [masks, size * size] counts, column by column, what passes before each pixel.
template <class C>
__global__ void drawn(const C* corners, const C* rois, const C* info, const long long* labels, const int* level,
                      const int* polygons, const int* starts, const int* region, const int* object, int* passings,
                      int* masks, long long size, long long classes, long long count) {
  const long long plane = size * size, lane = threadIdx.x;
  for (long long row = blockIdx.x * (long long)blockDim.y + threadIdx.y; row < count;
       row += gridDim.x * (long long)blockDim.y) {
    if (object[row] < 0) continue;
    const long long r = region[row];
    const C scale = info[3 * owner_of(level, r) + 2];
    C box[4];
    for (int k = 0; k < 4; k++) box[k] = rois[4 * r + k] / scale;
    int *passed = passings + row * plane, *mask = masks + (row * classes + labels[r]) * plane;
    for (long long i = lane; i < plane; i += 32) mask[i] = 0;
    for (int p = polygons[object[row]]; p < polygons[object[row] + 1]; p++) {
      for (long long i = lane; i < plane; i += 32) passed[i] = 0;
      __syncwarp();
      for (int c = starts[p]; c < starts[p + 1]; c++) {
        const int next = c + 1 < starts[p + 1] ? c + 1 : starts[p];
        const edge e = edge_of(corners + 2 * c, corners + 2 * next, box, size);
        for (long long k = lane; k < e.steps; k += 32) {
          long long x0, y0, x1, y1;
          e.at(k, x0, y0);
          e.at(k + 1, x1, y1);
          const long long at = (x1 < x0 ? x1 : x1 - 1) - FINE / 2;
          if (x0 == x1 || at < 0 || at % FINE != 0 || at / FINE >= size) continue;
          const double y = (double(y0 < y1 ? y0 : y1) + 0.5) / FINE - 0.5;
          const long long spot = at / FINE * size + (y < 0 ? 0 : y > double(size) ? size : (long long)ceil(y));
          if (spot < plane) atomicAdd(passed + spot, 1);
        }
      }
      __syncwarp();
      unsigned before = 0;
      for (long long i0 = 0; i0 < plane; i0 += 32) {
        const long long i = i0 + lane;
        const unsigned odd = __ballot_sync(0xffffffffu, i < plane && (passed[i] & 1));
        const int inside = (__popc(odd & (0xffffffffu >> (31 - lane))) + before) & 1;
        if (i < plane && inside) mask[i % size * size + i / size] = 1;
        before += __popc(odd);
      }
      __syncwarp();
    }
  }
}
