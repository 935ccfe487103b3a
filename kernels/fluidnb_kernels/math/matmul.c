// Products of matrices. Loops run along rows, so that compilers make vector instructions of the inner one.
#include "../element.c"

// Out[M, N] = X[M, K] · Y[K, N], in tiles of 8 rows and 16 columns, which compilers keep in registers
static void product(const T *x, const T *y, T *out, ptrdiff_t m, ptrdiff_t k, ptrdiff_t n) {
    enum { ROWS = 8, COLUMNS = 16 };
    for (ptrdiff_t i = 0; i < m; i += ROWS)
        for (ptrdiff_t j = 0; j < n; j += COLUMNS) {
            const ptrdiff_t rows = m - i < ROWS ? m - i : ROWS, columns = n - j < COLUMNS ? n - j : COLUMNS;
            T tile[ROWS][COLUMNS] = {{0}};
            if (rows == ROWS && columns == COLUMNS)  // the same with fixed bounds, so that the loops are unrolled
                for (ptrdiff_t l = 0; l < k; ++l)
                    for (int r = 0; r < ROWS; ++r)
                        for (int c = 0; c < COLUMNS; ++c) tile[r][c] += x[(i + r) * k + l] * y[l * n + j + c];
            else
                for (ptrdiff_t l = 0; l < k; ++l)
                    for (ptrdiff_t r = 0; r < rows; ++r)
                        for (ptrdiff_t c = 0; c < columns; ++c) tile[r][c] += x[(i + r) * k + l] * y[l * n + j + c];
            for (ptrdiff_t r = 0; r < rows; ++r)
                for (ptrdiff_t c = 0; c < columns; ++c) out[(i + r) * n + j + c] = tile[r][c];
        }
}

// the sum of x · y over n elements; in eight parts, so that compilers make vector instructions of it
static T dot_of(const T *x, ptrdiff_t x_step, const T *y, ptrdiff_t y_step, ptrdiff_t n) {
    const ptrdiff_t whole = x_step == 1 && y_step == 1 ? n / 8 * 8 : 0;
    T parts[8] = {0}, total = 0;
    for (ptrdiff_t i = 0; i < whole; i += 8)
        for (ptrdiff_t k = 0; k < 8; ++k) parts[k] += x[i + k] * y[i + k];
    for (ptrdiff_t k = 0; k < 8; ++k) total += parts[k];
    for (ptrdiff_t i = whole; i < n; ++i) total += x[i * x_step] * y[i * y_step];
    return total;
}

// Out[M, N] = X[M, K] · Yᵀ, Y[N, K]
static void product_with_rows(const T *x, const T *y, T *out, ptrdiff_t m, ptrdiff_t k, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < m; ++i)
        for (ptrdiff_t j = 0; j < n; ++j) out[i * n + j] = dot_of(x + i * k, 1, y + j * k, 1, k);
}

// Out[M, N] = Xᵀ · Y, X[K, M], Y[K, N]
static void product_of_columns(const T *x, const T *y, T *out, ptrdiff_t m, ptrdiff_t k, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < m * n; ++i) out[i] = 0;
    for (ptrdiff_t l = 0; l < k; ++l)
        for (ptrdiff_t i = 0; i < m; ++i) {
            const T a = x[l * m + i];
            for (ptrdiff_t j = 0; j < n; ++j) out[i * n + j] += a * y[l * n + j];
        }
}

// Out = X · Y, both as matrices.
void mul(const T *X, const T *Y, T *Out) {
    product(X, Y, Out, M, K, N);
}

// dX = dOut · Yᵀ; dY = Xᵀ · dOut.
void mul_grad(const T *X, const T *Y, const T *Out_GRAD, T *X_GRAD, T *Y_GRAD) {
    if (X_GRAD) product_with_rows(Out_GRAD, Y, X_GRAD, M, N, K);
    if (Y_GRAD) product_of_columns(X, Out_GRAD, Y_GRAD, K, M, N);
}

// Out[M, N] += FACTOR · X[M, K] · Y[K, N], where rows and columns are any distance apart
static void add_product(T factor, const T *x, ptrdiff_t x_row, ptrdiff_t x_column, const T *y, ptrdiff_t y_row,
                        ptrdiff_t y_column, T *out, ptrdiff_t out_row, ptrdiff_t out_column, ptrdiff_t m, ptrdiff_t k,
                        ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < m; ++i)
        if (y_column == 1 && out_column == 1) {
            for (ptrdiff_t l = 0; l < k; ++l) {
                const T a = factor * x[i * x_row + l * x_column];
                for (ptrdiff_t j = 0; j < n; ++j) out[i * out_row + j] += a * y[l * y_row + j];
            }
        } else {
            for (ptrdiff_t j = 0; j < n; ++j)
                out[i * out_row + j * out_column] +=
                    factor * dot_of(x + i * x_row, x_column, y + j * y_column, y_row, k);
        }
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
