// Whole numbers as rows of DEPTH elements.

// Out = 1 where the last index is X, 0 elsewhere; a number outside the depth gives a row of 0
void one_hot(const I *X, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i)
        for (ptrdiff_t k = 0; k < DEPTH; ++k) Out[i * DEPTH + k] = (T)((ptrdiff_t)X[i] == k);
}
