// Tensors one after another along a dimension: rows of the whole are the rows of all parts.

// Out = the X one after another
void concat(const T *const *X, T *Out) {
    for (ptrdiff_t row = 0; row < ROWS; ++row)
        for (ptrdiff_t k = 0; k < PARTS; ++k)
            memcpy(Out + row * WIDTH + STARTS[k], X[k] + row * WIDTHS[k], (size_t)WIDTHS[k] * sizeof(T));
}

// dX = the part of dOut that is X
void concat_grad(const T *Out_GRAD, T **X_GRAD) {
    for (ptrdiff_t row = 0; row < ROWS; ++row)
        for (ptrdiff_t k = 0; k < PARTS; ++k)
            memcpy(X_GRAD[k] + row * WIDTHS[k], Out_GRAD + row * WIDTH + STARTS[k], (size_t)WIDTHS[k] * sizeof(T));
}

// Out = the parts of X
void split(const T *X, T **Out) {
    for (ptrdiff_t row = 0; row < ROWS; ++row)
        for (ptrdiff_t k = 0; k < PARTS; ++k)
            memcpy(Out[k] + row * WIDTHS[k], X + row * WIDTH + STARTS[k], (size_t)WIDTHS[k] * sizeof(T));
}
