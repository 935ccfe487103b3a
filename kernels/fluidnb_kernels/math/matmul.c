// Products of matrices, in tiles of as many sums as compilers keep in registers; by CBLAS where USE_CBLAS is defined.
#include "../element.c"

// a tile = FACTOR · X[ROWS, K] · Y[K, 64 bytes of columns]
static inline void tile_of(T factor, const T *x, ptrdiff_t x_row, ptrdiff_t x_column, const T *y, ptrdiff_t y_row,
                           T *tile, ptrdiff_t k, int rows) {
#ifdef __GNUC__  // elements side by side, which gcc would otherwise keep in memory
    typedef T lane __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));
#else
    typedef T lane;
#endif
    enum { LANES = 64 / sizeof(lane), EACH = sizeof(lane) / sizeof(T) };
    lane sums[6][LANES];
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < LANES; ++c) sums[r][c] = (lane){0};
    for (ptrdiff_t l = 0; l < k; ++l)
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < LANES; ++c)
                sums[r][c] += x[r * x_row + l * x_column] * *(const lane *)(y + l * y_row + c * EACH);
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < LANES; ++c) *(lane *)(tile + (r * LANES + c) * EACH) = factor * sums[r][c];
}

// Out[M, N] += FACTOR · X[M, K] · Y[K, N], where rows and columns are any distance apart
static void add_product(T factor, const T *x, ptrdiff_t x_row, ptrdiff_t x_column, const T *y, ptrdiff_t y_row,
                        ptrdiff_t y_column, T *out, ptrdiff_t out_row, ptrdiff_t out_column, ptrdiff_t m, ptrdiff_t k,
                        ptrdiff_t n) {
#ifdef USE_CBLAS
    const int blas = _Generic((T)0, float: 1, double: 2, default: 0);
    if (blas && out_column == 1 && (x_row == 1 || x_column == 1) && (y_row == 1 || y_column == 1)) {
        const ptrdiff_t lead_x = x_column == 1 ? (x_row > k ? x_row : k) : x_column > m ? x_column : m;
        const ptrdiff_t lead_y = y_column == 1 ? (y_row > n ? y_row : n) : y_column > k ? y_column : k;
        const CBLAS_TRANSPOSE turn_x = x_column == 1 ? CblasNoTrans : CblasTrans;
        const CBLAS_TRANSPOSE turn_y = y_column == 1 ? CblasNoTrans : CblasTrans;
        const void *a = x, *b = y;
        void *c = out;
        if (blas == 1)
            cblas_sgemm(CblasRowMajor, turn_x, turn_y, (int)m, (int)n, (int)k, (float)factor, a, (int)lead_x, b,
                        (int)lead_y, 1, c, (int)(out_row > n ? out_row : n));
        else
            cblas_dgemm(CblasRowMajor, turn_x, turn_y, (int)m, (int)n, (int)k, (double)factor, a, (int)lead_x, b,
                        (int)lead_y, 1, c, (int)(out_row > n ? out_row : n));
        return;
    }
#endif
#ifdef MODEL_SMALL
    enum { COLUMNS = 64 / sizeof(T), DEPTH = 8 };
#else
    enum { COLUMNS = 64 / sizeof(T), DEPTH = 128 };
#endif
    T panel[DEPTH * COLUMNS], tile[6 * COLUMNS];
    for (ptrdiff_t first = 0; first < k; first += DEPTH)
        for (ptrdiff_t j = 0; j < n; j += COLUMNS) {
            const ptrdiff_t depth = k - first < DEPTH ? k - first : DEPTH, columns = n - j < COLUMNS ? n - j : COLUMNS;
            const T *part = y + first * y_row + j * y_column;
            const bool copies = y_column != 1 || columns < COLUMNS;  // into rows without gaps, zeros at their ends
            for (ptrdiff_t l = 0; copies && l < depth; ++l)
                for (ptrdiff_t c = 0; c < COLUMNS; ++c)
                    panel[l * COLUMNS + c] = c < columns ? part[l * y_row + c * y_column] : (T)0;
            const ptrdiff_t step = copies ? COLUMNS : y_row;
            if (copies) part = panel;
            for (ptrdiff_t i = 0, rows; i < m; i += rows) {
                const T *from = x + i * x_row + first * x_column;
                rows = m - i >= 6 ? 6 : m - i >= 4 ? 4 : m - i >= 2 ? 2 : 1;
                if (rows == 6)
                    tile_of(factor, from, x_row, x_column, part, step, tile, depth, 6);
                else if (rows == 4)
                    tile_of(factor, from, x_row, x_column, part, step, tile, depth, 4);
                else if (rows == 2)
                    tile_of(factor, from, x_row, x_column, part, step, tile, depth, 2);
                else
                    tile_of(factor, from, x_row, x_column, part, step, tile, depth, 1);
                for (ptrdiff_t r = 0; r < rows; ++r)
                    for (ptrdiff_t c = 0; c < columns; ++c)
                        out[(i + r) * out_row + (j + c) * out_column] += tile[r * COLUMNS + c];
            }
        }
}

// Out[M, N] = X[M, K] · Y[K, N]
static void product(const T *x, const T *y, T *out, ptrdiff_t m, ptrdiff_t k, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < m * n; ++i) out[i] = 0;
    add_product((T)1, x, k, 1, y, n, 1, out, n, 1, m, k, n);
}

// Out = X · Y, both as matrices.
void mul(const T *X, const T *Y, T *Out) {
    product(X, Y, Out, M, K, N);
}

// dX = dOut · Yᵀ; dY = Xᵀ · dOut.
void mul_grad(const T *X, const T *Y, const T *Out_GRAD, T *X_GRAD, T *Y_GRAD) {
    for (ptrdiff_t i = 0; X_GRAD && i < M * K; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Y_GRAD && i < K * N; ++i) Y_GRAD[i] = 0;
    if (X_GRAD) add_product((T)1, Out_GRAD, N, 1, Y, 1, N, X_GRAD, K, 1, M, N, K);
    if (Y_GRAD) add_product((T)1, X, 1, K, Out_GRAD, N, 1, Y_GRAD, N, 1, K, M, N);
}

// Out = ALPHA · X · Y for each matrix of a batch; X or Y may be one for several.
void matmul(const T *X, const T *Y, T *Out) {
    for (ptrdiff_t i = 0; i < BATCHES * M * N; ++i) Out[i] = 0;
    for (ptrdiff_t b = 0; b < BATCHES; ++b)
        add_product(ALPHA, X + element(b, SIZES, X_STEPS, RANK), X_ROW, X_COLUMN, Y + element(b, SIZES, Y_STEPS, RANK),
                    Y_ROW, Y_COLUMN, Out + b * M * N, N, 1, M, K, N);
}

// dX = ALPHA · dOut · Yᵀ; dY = ALPHA · Xᵀ · dOut; each added up over the batches in which it was repeated
void matmul_grad(const T *X, const T *Y, const T *Out_GRAD, T *X_GRAD, T *Y_GRAD) {
    for (ptrdiff_t i = 0; X_GRAD && i < X_COUNT; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Y_GRAD && i < Y_COUNT; ++i) Y_GRAD[i] = 0;
    for (ptrdiff_t b = 0; b < BATCHES; ++b) {
        const ptrdiff_t at_x = element(b, SIZES, X_STEPS, RANK), at_y = element(b, SIZES, Y_STEPS, RANK);
        const T *g = Out_GRAD + b * M * N;
        if (X_GRAD)
            add_product(ALPHA, g, N, 1, Y + at_y, Y_COLUMN, Y_ROW, X_GRAD + at_x, X_ROW, X_COLUMN, M, N, K);
        if (Y_GRAD)
            add_product(ALPHA, X + at_x, X_COLUMN, X_ROW, g, N, 1, Y_GRAD + at_y, Y_ROW, Y_COLUMN, K, M, N);
    }
}
