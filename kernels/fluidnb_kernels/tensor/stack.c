// Tensors of one shape along a new dimension: rows of WIDTH elements of each in turn.

// Y = the X in turn
void stack(const T *const *X, T *Y) {
    for (ptrdiff_t row = 0; row < ROWS; ++row)
        for (ptrdiff_t k = 0; k < PARTS; ++k)
            memcpy(Y + (row * LAYERS + LAYER[k]) * WIDTH, X[k] + row * WIDTH, WIDTH * sizeof(T));
}

// dX = the layers of dY
void stack_grad(const T *Y_GRAD, T **X_GRAD) {
    for (ptrdiff_t row = 0; row < ROWS; ++row)
        for (ptrdiff_t k = 0; k < PARTS; ++k)
            memcpy(X_GRAD[k] + row * WIDTH, Y_GRAD + (row * LAYERS + LAYER[k]) * WIDTH, WIDTH * sizeof(T));
}

// Y = the layers of X
void unstack(const T *X, T **Y) {
    for (ptrdiff_t row = 0; row < ROWS; ++row)
        for (ptrdiff_t k = 0; k < PARTS; ++k)
            memcpy(Y[k] + row * WIDTH, X + (row * LAYERS + LAYER[k]) * WIDTH, WIDTH * sizeof(T));
}

// dX = the dY in turn
void unstack_grad(const T *const *Y_GRAD, T *X_GRAD) {
    for (ptrdiff_t row = 0; row < ROWS; ++row)
        for (ptrdiff_t k = 0; k < PARTS; ++k)
            memcpy(X_GRAD + (row * LAYERS + LAYER[k]) * WIDTH, Y_GRAD[k] + row * WIDTH, WIDTH * sizeof(T));
}
