// Products of matrices. Loops run along rows, so that compilers make vector instructions of the inner one.

// Out[M, N] = X[M, K] · Y[K, N]
static void product(const T *x, const T *y, T *out, ptrdiff_t m, ptrdiff_t k, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < m; ++i) {
        T *row = out + i * n;
        for (ptrdiff_t j = 0; j < n; ++j) row[j] = 0;
        for (ptrdiff_t l = 0; l < k; ++l) {
            const T a = x[i * k + l];
            for (ptrdiff_t j = 0; j < n; ++j) row[j] += a * y[l * n + j];
        }
    }
}

// Out[M, N] = X[M, K] · Yᵀ, Y[N, K]
static void product_with_rows(const T *x, const T *y, T *out, ptrdiff_t m, ptrdiff_t k, ptrdiff_t n) {
    for (ptrdiff_t i = 0; i < m; ++i)
        for (ptrdiff_t j = 0; j < n; ++j) {
            T total = 0;
            for (ptrdiff_t l = 0; l < k; ++l) total += x[i * k + l] * y[j * k + l];
            out[i * n + j] = total;
        }
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
