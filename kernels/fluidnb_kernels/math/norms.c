// Sizes of tensors of COUNT elements.

// the sum of the squares of elements
static double squares_of(const T *x, ptrdiff_t n) {
    double total = 0;
    for (ptrdiff_t i = 0; i < n; ++i) total += (double)x[i] * (double)x[i];
    return total;
}

// Out = the sum of X²
void squared_l2_norm(const T *X, T *Out) {
    Out[0] = (T)squares_of(X, COUNT);
}

// dX = 2 · dOut · X
void squared_l2_norm_grad(const T *X, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) X_GRAD[i] = X[i] * ((T)2 * Out_GRAD[0]);
}

// Out = X · LONGEST / max(LONGEST, √ΣX²)
void clip_by_norm(const T *X, T *Out) {
    const T length = (T)sqrt(squares_of(X, COUNT)), factor = length > LONGEST ? LONGEST / length : (T)1;
    for (ptrdiff_t i = 0; i < COUNT; ++i) Out[i] = X[i] * factor;
}

// Norm = √(ΣX² + EPSILON) along lines of N elements that are INNER apart; Out = X / Norm
void norm(const T *X, T *Norm, T *Out) {
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t j = 0; j < INNER; ++j) {
            const ptrdiff_t from = o * N * INNER + j;
            T total = 0;
            for (ptrdiff_t k = 0; k < N; ++k) total += X[from + k * INNER] * X[from + k * INNER];
            const T length = sqrt(total + EPSILON);
            for (ptrdiff_t k = 0; k < N; ++k) Out[from + k * INNER] = X[from + k * INNER] / length;
            if (Norm) Norm[o * INNER + j] = length;
        }
}

// dX = (dOut - X · Σ(X · dOut) / Norm²) / Norm
void norm_grad(const T *X, const T *Norm, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t j = 0; j < INNER; ++j) {
            const ptrdiff_t from = o * N * INNER + j;
            const T length = Norm[o * INNER + j];
            T total = 0;
            for (ptrdiff_t k = 0; k < N; ++k) total += X[from + k * INNER] * Out_GRAD[from + k * INNER];
            for (ptrdiff_t k = 0; k < N; ++k) {
                const ptrdiff_t at = from + k * INNER;
                X_GRAD[at] = (Out_GRAD[at] - X[at] * total / (length * length)) / length;
            }
        }
}

// Out = (Σ|X|ᵖ)^(1/p) along lines of N elements that are INNER apart
void p_norm(const T *X, T *Out) {
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t j = 0; j < INNER; ++j) {
            T total = FIRST;
            for (ptrdiff_t k = 0; k < N; ++k) {
                const T size = fabs(X[(o * N + k) * INNER + j]);
                total = TOTAL;
            }
            Out[o * INNER + j] = LENGTH;
        }
}

// dX = dOut · sign(X) · (|X| / Out)^(p-1)
void p_norm_grad(const T *X, const T *Out, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t k = 0; k < N; ++k)
            for (ptrdiff_t j = 0; j < INNER; ++j) {
                const ptrdiff_t at = (o * N + k) * INNER + j;
                const T size = fabs(X[at]), sign = (T)((X[at] > 0) - (X[at] < 0));
                const T length = Out[o * INNER + j], slope = Out_GRAD[o * INNER + j];
                (void)size, (void)sign, (void)length, (void)slope;
                X_GRAD[at] = SLOPE;
            }
}
