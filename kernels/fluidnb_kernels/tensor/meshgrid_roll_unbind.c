// Elements rearranged: moved around along dimensions, or in parts.

// the place of element i of a tensor before it was moved by shifts
static ptrdiff_t place_before(ptrdiff_t i, const ptrdiff_t *sizes, const ptrdiff_t *shifts, int rank) {
    ptrdiff_t at = 0, step = 1;
    for (int d = rank - 1; d >= 0; --d) {
        at += (i % sizes[d] + sizes[d] - shifts[d]) % sizes[d] * step;
        i /= sizes[d];
        step *= sizes[d];
    }
    return at;
}

// Out = X moved by SHIFTS; what leaves at an end comes in at the other
void roll(const T *X, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) Out[i] = X[place_before(i, SIZES, SHIFTS, RANK)];
}

// dX = dOut moved back
void roll_grad(const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) X_GRAD[place_before(i, SIZES, SHIFTS, RANK)] = Out_GRAD[i];
}

// Out = the parts of X along a dimension
void unbind(const T *X, T **Out) {
    for (ptrdiff_t row = 0; row < ROWS; ++row)
        for (ptrdiff_t k = 0; k < PARTS; ++k)
            memcpy(Out[k] + row * WIDTH, X + (row * LAYERS + LAYER[k]) * WIDTH, WIDTH * sizeof(T));
}

// Out[k] = a list of X along one dimension, repeated along the others
void meshgrid(const T *const *X, T **Out) {
    for (ptrdiff_t k = 0; k < PARTS; ++k)
        for (ptrdiff_t j = 0; j < COUNT; ++j) Out[k][j] = X[LISTS[k]][j / INNERS[k] % SIZES[k]];
}
