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
