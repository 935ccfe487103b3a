/* Products of float32 matrices for processors with vectors of 64 bytes.

Blocks of the operands are copied into the order in which a tile of the result reads them (Goto and van de Geijn,
Anatomy of high-performance matrix multiplication, 2008). In which order the products of an element are added up depends
on sizes and layouts alone, not on the number of threads: these share rows, columns or matrices. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void *PyCapsule_GetPointer(void *, const char *);
void *PyEval_SaveThread(void);
void PyEval_RestoreThread(void *);
void Py_IncRef(void *);

#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 16")
/* Elements of a vector; rows and vectors of a tile, which with what is read fill the 32 registers. */
enum { LANES = 16, ROWS = 14, VECTORS = 2, COLUMNS = VECTORS * LANES };
/* Sizes of blocks: of k, of rows and of columns. What a tile reads is in the first cache, the block of the right
operand in the second. */
enum { DEPTH = 256, HEIGHT = 196, WIDTH = 512 };
/* Rows up to which the right operand is read where it is: always, and where its rows are few or not further apart. */
enum { ONE_TILE = ROWS, FEW_ROWS = 64, NEAR = 800 };
/* Columns up to which the left operand is read where it is. */
enum { FEW_COLUMNS = 64, FAR = 384 };
/* Rows and columns of a tile of rows by rows, and elements of both at a time. Such tiles pay up to so many rows, or so
many of both operands, with so many elements or more. */
enum { SIDE = 5, LENGTH = 1024, SHORT = 16, BOTH_SHORT = 32, LONG = 128 };

typedef float vector __attribute__((vector_size(64)));
typedef float unaligned __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t lanes __attribute__((vector_size(64)));

/* A matrix, or one of each of a batch; distances in elements. */
typedef struct { float *at; int64_t batch, row, column; } matrix;
typedef struct { int64_t batch, m, n, k; matrix a, b, c; } product_t;

INLINE vector load(const float *from) { return *(const unaligned *)from; }
INLINE void store(float *to, vector v) { *(unaligned *)to = v; }
INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t parts(int64_t size, int64_t most) { return (size + most - 1) / most; }

/* Lanes of two vectors whose blocks of h x h elements are exchanged. */
#define LOW(h, i) ((i) & (h) ? LANES + (i) - (h) : (i))
#define HIGH(h, i) ((i) & (h) ? LANES + (i) : (i) + (h))
#define ALL(of, h) of(h, 0), of(h, 1), of(h, 2), of(h, 3), of(h, 4), of(h, 5), of(h, 6), of(h, 7), of(h, 8), \
  of(h, 9), of(h, 10), of(h, 11), of(h, 12), of(h, 13), of(h, 14), of(h, 15)
#ifdef __clang__
#define CHOSEN(x, y, of, h) __builtin_shufflevector(x, y, ALL(of, h))
#else
#define CHOSEN(x, y, of, h) __builtin_shuffle(x, y, (lanes){ALL(of, h)})
#endif

#define EXCHANGED(h) \
  UNROLL for (int i = 0; i < LANES; i++) if (!(i & h)) { \
    vector x = v[i], y = v[i + h]; \
    v[i] = CHOSEN(x, y, LOW, h); \
    v[i + h] = CHOSEN(x, y, HIGH, h); \
  }
INLINE void transpose(vector v[LANES]) { EXCHANGED(8) EXCHANGED(4) EXCHANGED(2) EXCHANGED(1) }

#define HALVED(h) \
  UNROLL for (int i = 0; i < h; i++) v[i] = CHOSEN(v[i], v[i + h], LOW, h) + CHOSEN(v[i], v[i + h], HIGH, h);
/* A vector of the sums of the lanes of each vector. */
INLINE vector sums(vector v[LANES]) {
  HALVED(8) HALVED(4) HALVED(2) HALVED(1)
  return v[0];
}

/* to[p * step + i] = from[i * row + p] for i < rows and p < k; for each p in turn it writes 16 elements. */
static void turned(int64_t rows, int64_t k, const float *from, int64_t row, float *to, int64_t step) {
  for (int64_t p = 0; p < k; p += LANES) {
    vector v[LANES];
    int64_t width = least(LANES, k - p);
    if (width == LANES) {
      UNROLL for (int i = 0; i < LANES; i++) v[i] = i < rows ? load(from + i * row + p) : (vector){0};
    } else {
      float ends[LANES][LANES] = {{0}};
      for (int64_t i = 0; i < rows; i++) memcpy(ends[i], from + i * row + p, width * sizeof(float));
      for (int i = 0; i < LANES; i++) v[i] = load(ends[i]);
    }
    transpose(v);
    for (int q = 0; q < width; q++) store(to + (p + q) * step, v[q]);
  }
}

/* Rows of the left operand, as many as a tile has, one column of them after the other. */
static void copy_left(int64_t m, int64_t k, int64_t rows, const float *a, int64_t row, int64_t column, float *to) {
  for (int64_t first = 0; first < m; first += rows) {
    const int64_t now = least(rows, m - first);
    const float *from = a + first * row;
    if (column == 1) {
      turned(now, k, from, row, to, now);
    } else if (row == 1 && first + LANES <= m) {
      for (int64_t p = 0; p < k; p++) store(to + p * now, load(from + p * column));
    } else {
      for (int64_t p = 0; p < k; p++)
        for (int64_t i = 0; i < now; i++) to[p * now + i] = from[i * row + p * column];
    }
    to += now * k;
  }
}

/* Columns of the right operand, as many as a tile has, one row of them after the other. */
static void copy_right(int64_t k, int64_t n, const float *b, int64_t row, int64_t column, float *to) {
  for (int64_t first = 0; first < n; first += COLUMNS) {
    int64_t now = least(COLUMNS, n - first);
    const float *from = b + first * column;
    if (column == 1 && now == COLUMNS) {
      for (int64_t p = 0; p < k; p++)
        for (int j = 0; j < COLUMNS; j += LANES) store(to + p * COLUMNS + j, load(from + p * row + j));
    } else if (row == 1) {
      for (int j = 0; j < COLUMNS; j += LANES)
        turned(now < j ? 0 : least(LANES, now - j), k, from + j * column, column, to + j, COLUMNS);
    } else {
      for (int64_t p = 0; p < k; p++)
        for (int64_t j = 0; j < COLUMNS; j++) to[p * COLUMNS + j] = j < now ? from[p * row + j * column] : 0;
    }
    to += COLUMNS * k;
  }
}

/* A tile of the result: rows of the left operand, at distances `a_row` and `a_column`, by a block of columns of the
right one, `width` of which are there. */
INLINE void tile(
    const int rows, const int vectors, int64_t k, const float *a, int64_t a_row, int64_t a_column, const float *b,
    int64_t b_row, float *c, int64_t c_row, int64_t width, int add) {
  vector sum[ROWS][VECTORS];
  UNROLL for (int i = 0; i < rows; i++) for (int j = 0; j < vectors; j++) sum[i][j] = (vector){0};
  for (int64_t p = 0; p < k; p++, a += a_column, b += b_row) {
    vector right[VECTORS];
    for (int j = 0; j < vectors; j++) right[j] = load(b + j * LANES);
    UNROLL for (int i = 0; i < rows; i++) {
      vector left = a[i * a_row] - (vector){0};
      UNROLL for (int j = 0; j < vectors; j++) sum[i][j] += left * right[j];
    }
  }
  if (width == vectors * LANES) {
    if (add) {
      UNROLL for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) sum[i][j] += load(c + i * c_row + j * LANES);
    }
    UNROLL for (int i = 0; i < rows; i++)
      for (int j = 0; j < vectors; j++) store(c + i * c_row + j * LANES, sum[i][j]);
    return;
  }
  float whole[ROWS][COLUMNS];
  UNROLL for (int i = 0; i < rows; i++)
    for (int j = 0; j < vectors; j++) store(whole[i] + j * LANES, sum[i][j]);
  for (int i = 0; i < rows; i++)
    for (int64_t j = 0; j < width; j++) c[i * c_row + j] = add ? whole[i][j] + c[i * c_row + j] : whole[i][j];
}

typedef void tile_t(
    int64_t, const float *, int64_t, int64_t, const float *, int64_t, float *, int64_t, int64_t, int);
/* Elements of a column of the left operand are next to each other, or those of a row. */
#define TILE(rows, vectors) \
  APART void tile_##rows##_##vectors##_columns( \
      int64_t k, const float *a, int64_t a_row, int64_t a_column, const float *b, int64_t b_row, float *c, \
      int64_t c_row, int64_t width, int add) { \
    tile(rows, vectors, k, a, 1, a_column, b, b_row, c, c_row, width, add); \
  } \
  APART void tile_##rows##_##vectors##_rows( \
      int64_t k, const float *a, int64_t a_row, int64_t a_column, const float *b, int64_t b_row, float *c, \
      int64_t c_row, int64_t width, int add) { \
    tile(rows, vectors, k, a, a_row, 1, b, b_row, c, c_row, width, add); \
  }
#define TILES(of, vectors) \
  of(1, vectors) of(2, vectors) of(3, vectors) of(4, vectors) of(5, vectors) of(6, vectors) of(7, vectors) \
  of(8, vectors) of(9, vectors) of(10, vectors) of(11, vectors) of(12, vectors) of(13, vectors) of(14, vectors)
TILES(TILE, 1) TILES(TILE, 2)
#define TILE_NAMES(rows, vectors) {tile_##rows##_##vectors##_columns, tile_##rows##_##vectors##_rows},
static tile_t *const tiles[VECTORS][ROWS][2] = {{TILES(TILE_NAMES, 1)}, {TILES(TILE_NAMES, 2)}};

/* Rows of the tiles of m rows: all have about as many. */
static int64_t rows_of(int64_t m) { return parts(m, parts(m, ROWS)); }

static void by_blocks(int64_t m, int64_t n, int64_t k, matrix a, matrix b, matrix c) {
  const int64_t rows = rows_of(m), height = HEIGHT / rows * rows, depth = least(k, DEPTH);
  /* Copies of the left operand end with a whole vector. */
  const int64_t left_size = parts(least(m, height) * depth + LANES, LANES) * LANES;
  const int64_t right_size = depth * parts(least(n, WIDTH), COLUMNS) * COLUMNS;
  float *left = aligned_alloc(64, (left_size + right_size) * sizeof(float)), *right = left + left_size;
  /* Columns that are far apart are better copied than read for each tile. */
  const int near = a.column == 1 || (a.row == 1 && (k <= FAR || a.column <= FAR));
  const int left_is_read = n <= FEW_COLUMNS && near;
  const int right_is_read = b.column == 1 && (m <= ONE_TILE || (m <= FEW_ROWS && (b.row <= NEAR || k <= FEW_ROWS)));
  for (int64_t x = 0; x < n; x += WIDTH) {
    const int64_t width = least(WIDTH, n - x), whole = right_is_read ? width / COLUMNS * COLUMNS : 0;
    for (int64_t z = 0, part; z < k; z += part) {
      part = k - z <= DEPTH ? k - z : least(DEPTH, parts(k - z, 2));
      const float *block = b.at + z * b.row + x * b.column;
      copy_right(part, width - whole, block + whole * b.column, b.row, b.column, right);
      for (int64_t y = 0; y < m; y += height) {
        const int64_t now = least(height, m - y);
        const float *from = a.at + y * a.row + z * a.column;
        if (!left_is_read) copy_left(now, part, rows, from, a.row, a.column, left);
        for (int64_t j = 0; j < width; j += COLUMNS)
          for (int64_t i = 0; i < now; i += rows) {
            const int64_t tall = least(rows, now - i);
            tiles[width - j > LANES][tall - 1][left_is_read && a.row != 1](
                part, left_is_read ? from + i * a.row : left + i * part, a.row, left_is_read ? a.column : tall,
                j < whole ? block + j : right + (j - whole) * part, j < whole ? b.row : COLUMNS,
                c.at + (y + i) * c.row + x + j, c.row, least(COLUMNS, width - j), z > 0);
          }
      }
    }
  }
  free(left);
}

/* A tile of rows by rows: nothing is copied, which pays where few rows are long. */
INLINE void row_tile(
    const int rows, const int columns, int64_t k, const float *a, int64_t a_row, const float *b, int64_t b_row,
    float *c, int64_t c_row, int add) {
  const lanes number = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  vector sum[2 * LANES];
  UNROLL for (int i = 0; i < 2 * LANES; i++) sum[i] = (vector){0};
  for (int64_t p = 0; p + LANES <= k; p += LANES) {
    vector right[SIDE];
    for (int j = 0; j < columns; j++) right[j] = load(b + j * b_row + p);
    UNROLL for (int i = 0; i < rows; i++) {
      vector left = load(a + i * a_row + p);
      UNROLL for (int j = 0; j < columns; j++) sum[i * columns + j] += left * right[j];
    }
  }
  if (k % LANES) { /* once more the last vector, without what is summed already */
    const lanes last = number >= LANES - (int32_t)(k % LANES);
    for (int i = 0; i < rows; i++) {
      vector left = (vector)((lanes)load(a + i * a_row + k - LANES) & last);
      for (int j = 0; j < columns; j++)
        sum[i * columns + j] += left * (vector)((lanes)load(b + j * b_row + k - LANES) & last);
    }
  }
  float out[2 * LANES];
  store(out, sums(sum));
  if (rows * columns > LANES) store(out + LANES, sums(sum + LANES));
  for (int i = 0; i < rows; i++)
    for (int j = 0; j < columns; j++)
      c[i * c_row + j] = add ? out[i * columns + j] + c[i * c_row + j] : out[i * columns + j];
}

typedef void row_tile_t(int64_t, const float *, int64_t, const float *, int64_t, float *, int64_t, int);
#define ROW_TILE(rows, columns) \
  APART void row_tile_##rows##_##columns(int64_t k, const float *a, int64_t a_row, const float *b, int64_t b_row, \
                                         float *c, int64_t c_row, int add) { \
    row_tile(rows, columns, k, a, a_row, b, b_row, c, c_row, add); \
  }
#define ROW_TILES(of, rows) of(rows, 1) of(rows, 2) of(rows, 3) of(rows, 4) of(rows, 5)
ROW_TILES(ROW_TILE, 1) ROW_TILES(ROW_TILE, 2) ROW_TILES(ROW_TILE, 3) ROW_TILES(ROW_TILE, 4) ROW_TILES(ROW_TILE, 5)
#define ROW_TILE_NAME(rows, columns) row_tile_##rows##_##columns,
static row_tile_t *const row_tiles[SIDE][SIDE] = {
  {ROW_TILES(ROW_TILE_NAME, 1)}, {ROW_TILES(ROW_TILE_NAME, 2)}, {ROW_TILES(ROW_TILE_NAME, 3)},
  {ROW_TILES(ROW_TILE_NAME, 4)}, {ROW_TILES(ROW_TILE_NAME, 5)},
};

static void by_rows(int64_t m, int64_t n, int64_t k, matrix a, matrix b, matrix c) {
  const int64_t rows = parts(m, parts(m, SIDE)), columns = parts(n, parts(n, SIDE));
  for (int64_t z = 0, part; z < k; z += part) {
    part = k - z <= LENGTH ? k - z : least(LENGTH, parts(k - z, 2));
    for (int64_t i = 0; i < m; i += rows)
      for (int64_t j = 0; j < n; j += columns)
        row_tiles[least(rows, m - i) - 1][least(columns, n - j) - 1](
            part, a.at + i * a.row + z, a.row, b.at + j * b.column + z, b.column, c.at + i * c.row + j, c.row, z > 0);
  }
}

/* One of `count` parts of a product: some of the batch, or some rows or columns of each matrix. */
static void part_of(const product_t *of, int64_t number, int64_t count) {
  product_t p = *of;
  const int few = least(p.m, p.n) <= SHORT || (p.m <= BOTH_SHORT && p.n <= BOTH_SHORT);
  const int rows = few && p.k >= LONG && p.a.column == 1 && p.b.row == 1;
  int64_t first = 0, last = p.batch;
  if (p.batch >= count) {
    first = p.batch * number / count, last = p.batch * (number + 1) / count;
  } else {
    const int64_t unit = p.n >= p.m ? COLUMNS : rows_of(p.m), size = p.n >= p.m ? p.n : p.m, units = parts(size, unit);
    const int64_t begin = units * number / count * unit, end = least(units * (number + 1) / count * unit, size);
    if (p.n >= p.m) {
      p.b.at += begin * p.b.column, p.c.at += begin, p.n = end - begin;
    } else {
      p.a.at += begin * p.a.row, p.c.at += begin * p.c.row, p.m = end - begin;
    }
    if (begin == end) return;
  }
  for (int64_t i = first; i < last; i++) {
    matrix a = p.a, b = p.b, c = p.c;
    a.at += i * a.batch, b.at += i * b.batch, c.at += i * c.batch;
    (rows ? by_rows : by_blocks)(p.m, p.n, p.k, a, b, c);
  }
}

/* Threads that share the parts of a product. They look for the next one for about 50 us before they sleep.

`ticket` is the number of the round, how many parts it has and which is the next, in one word: whoever adds 1 to it has
a part of this round or none. */
enum { LOOKS = 1000, MOST_THREADS = 64, ROUND = 32, COUNT = 16 };
static struct {
  pthread_mutex_t used, lock;
  pthread_cond_t more;
  const product_t *product;
  uint64_t ticket;
  int64_t left, threads, asleep;
} pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};

static uint64_t round_now(void) { return __atomic_load_n(&pool.ticket, __ATOMIC_SEQ_CST) >> ROUND; }

static void relax(void) {
#ifdef __x86_64__
  __builtin_ia32_pause();
#endif
}

static void share(void) {
  for (;;) {
    const uint64_t ticket = __atomic_fetch_add(&pool.ticket, 1, __ATOMIC_SEQ_CST);
    const uint16_t number = ticket, count = ticket >> COUNT;
    if (number >= count) return;
    part_of(pool.product, number, count);
    __atomic_fetch_sub(&pool.left, 1, __ATOMIC_SEQ_CST);
  }
}

static void *work(void *seen) {
  for (uint64_t last = (uint64_t)seen;; last = round_now(), share()) {
    for (int i = 0; i < LOOKS && round_now() == last; i++) relax();
    if (round_now() != last) continue;
    pthread_mutex_lock(&pool.lock);
    pool.asleep++;
    while (round_now() == last) pthread_cond_wait(&pool.more, &pool.lock);
    pool.asleep--;
    pthread_mutex_unlock(&pool.lock);
  }
  return 0;
}

/* A forked process has no such threads. */
static void forget(void) {
  pthread_mutex_init(&pool.used, 0), pthread_mutex_init(&pool.lock, 0), pthread_cond_init(&pool.more, 0);
  pool.threads = pool.asleep = 0;
}

/* Let there be so many threads; signals are for those of the program. */
static void start(int64_t threads) {
  static int begun;
  if (!begun) begun = !pthread_atfork(0, 0, forget);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (pthread_t thread; pool.threads < threads; pool.threads++) {
    if (pthread_create(&thread, 0, work, (void *)round_now())) break;
    pthread_detach(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, 0);
}

/* Multiplications that are worth a thread, which has to fetch operands from the cache of another core: with 2 million a
step of a perceptron took 1.2 times as long by two threads as by one. */
static const int64_t WORTH = 8000000;

static void compute(const product_t *p, int64_t threads) {
  const int64_t count = least(least(threads, MOST_THREADS), p->batch * p->m * p->n * p->k / WORTH);
  if (count < 2 || pthread_mutex_trylock(&pool.used)) { /* another thread of the program has the pool */
    part_of(p, 0, 1);
    return;
  }
  start(count - 1);
  pool.product = p;
  pool.left = count;
  const uint64_t next = (round_now() + 1) << ROUND | (uint64_t)count << COUNT;
  pthread_mutex_lock(&pool.lock);
  __atomic_store_n(&pool.ticket, next, __ATOMIC_SEQ_CST);
  if (pool.asleep) pthread_cond_broadcast(&pool.more);
  pthread_mutex_unlock(&pool.lock);
  share();
  while (__atomic_load_n(&pool.left, __ATOMIC_SEQ_CST)) relax();
  pthread_mutex_unlock(&pool.used);
}

/* Numbers of a table, in this order: the address of a function that gives the number of threads, or 0; the batch, m, n
and k; the address, and the distances in elements of matrices, rows and columns, of each operand and of the result. */
enum { THREADS, BATCH, M, N, K, A, B = A + 4, C = B + 4 };
static matrix matrix_at(const int64_t *P) { return (matrix){(float *)P[0], P[1], P[2], P[3]}; }

void *product(void *self, void *kept) {
  const int64_t *P = PyCapsule_GetPointer(self, 0);
  const product_t p = {P[BATCH], P[M], P[N], P[K], matrix_at(P + A), matrix_at(P + B), matrix_at(P + C)};
  void *thread = PyEval_SaveThread();
  compute(&p, P[THREADS] ? ((int (*)(void))P[THREADS])() : 1);
  PyEval_RestoreThread(thread);
  Py_IncRef(self);
  return self;
}
