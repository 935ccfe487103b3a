// Rows by their numbers: X is [OUTER, HEIGHT, INNER]; negative numbers count from the end.

// the row of a number; -1 where there is none
static ptrdiff_t row_of(ptrdiff_t number, ptrdiff_t height) {
    const ptrdiff_t row = number < 0 ? number + height : number;
    return row >= 0 && row < height ? row : -1;
}

// Out[i] = X[Index[i]]; 0 where that is no row
void gather(const T *X, const I *Index, T *Out) {
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t i = 0; i < COUNT; ++i) {
            const ptrdiff_t row = row_of((ptrdiff_t)Index[i], HEIGHT);
            for (ptrdiff_t j = 0; j < INNER; ++j)
                Out[(o * COUNT + i) * INNER + j] = row < 0 ? (T)0 : X[(o * HEIGHT + row) * INNER + j];
        }
}

// dX = 0, with each row of dOut added where it came from
void gather_grad(const I *Index, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < OUTER * HEIGHT * INNER; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t i = 0; i < COUNT; ++i) {
            const ptrdiff_t row = row_of((ptrdiff_t)Index[i], HEIGHT);
            for (ptrdiff_t j = 0; row >= 0 && j < INNER; ++j)
                X_GRAD[(o * HEIGHT + row) * INNER + j] += Out_GRAD[(o * COUNT + i) * INNER + j];
        }
}

// the place in X of the row that DEPTH numbers name; -1 where there is none
static ptrdiff_t place_of(const I *numbers, const ptrdiff_t *sizes, int depth) {
    ptrdiff_t at = 0;
    for (int d = 0; d < depth; ++d) {
        const ptrdiff_t row = row_of((ptrdiff_t)numbers[d], sizes[d]);
        if (row < 0) return -1;
        at = at * sizes[d] + row;
    }
    return at;
}

// Out[i] = X[Index[i]]; 0 where that is no row
void gather_nd(const T *X, const I *Index, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const ptrdiff_t row = place_of(Index + i * DEPTH, SIZES, DEPTH);
        for (ptrdiff_t j = 0; j < INNER; ++j) Out[i * INNER + j] = row < 0 ? (T)0 : X[row * INNER + j];
    }
}

// dX = 0, with each row of dOut added where it came from
void gather_nd_grad(const I *Index, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < WHOLE; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const ptrdiff_t row = place_of(Index + i * DEPTH, SIZES, DEPTH);
        for (ptrdiff_t j = 0; row >= 0 && j < INNER; ++j) X_GRAD[row * INNER + j] += Out_GRAD[i * INNER + j];
    }
}
