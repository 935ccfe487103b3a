// One row from each sequence, and rows as shares of their sequence. A row has WIDTH elements.

// Out[i] = the average, sum, sum / sqrt(length), largest, last or first of the rows of sequence i; PAD without rows
void sequence_pool(const T *X, const int64_t *X_LOD, T *Out, int32_t *MaxIndex) {
    for (ptrdiff_t i = 0; i < SEQUENCES; ++i) {
        const int64_t from = X_LOD[i], to = X_LOD[i + 1];
        for (ptrdiff_t j = 0; j < WIDTH; ++j) {
            T value = PAD;
            int64_t at = IS_MAX && to == from ? -1 : 0;
            if (to > from) {
                value = X[(IS_LAST ? to - 1 : from) * WIDTH + j];
                if (IS_MAX) at = from;
                for (int64_t r = from + 1; r < to; ++r) {
                    const T x = X[r * WIDTH + j];
                    if (IS_SUM) value += x;
                    if (IS_MAX && x > value) {
                        value = x;
                        at = r;
                    }
                }
                if (IS_AVERAGE) value /= (T)(to - from);
                if (IS_ROOT) value /= sqrt((T)(to - from));
            }
            Out[i * WIDTH + j] = value;
            if (MaxIndex) MaxIndex[i * WIDTH + j] = (int32_t)at;
        }
    }
}

// dX = the share of each row in the gradient of its sequence
void sequence_pool_grad(const T *X, const int64_t *X_LOD, const T *Out_GRAD, const int32_t *MaxIndex, T *X_GRAD) {
    (void)X, (void)MaxIndex;
    for (ptrdiff_t i = 0; i < COUNT; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t i = 0; i < SEQUENCES; ++i) {
        const int64_t from = X_LOD[i], to = X_LOD[i + 1];
        for (ptrdiff_t j = 0; to > from && j < WIDTH; ++j) {
            T g = Out_GRAD[i * WIDTH + j];
            if (IS_AVERAGE) g /= (T)(to - from);
            if (IS_ROOT) g /= sqrt((T)(to - from));
            if (IS_MAX)
                X_GRAD[MaxIndex[i * WIDTH + j] * WIDTH + j] = g;
            else if (IS_SUM)
                for (int64_t r = from; r < to; ++r) X_GRAD[r * WIDTH + j] = g;
            else
                X_GRAD[(IS_LAST ? to - 1 : from) * WIDTH + j] = g;
        }
    }
}

// Out = exp(X - max) / sum(exp(X - max)) in each sequence
void sequence_softmax(const T *X, const int64_t *X_LOD, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i)
        if (i >= X_LOD[SEQUENCES]) Out[i] = 0;
    for (ptrdiff_t i = 0; i < SEQUENCES; ++i) {
        const int64_t from = X_LOD[i], to = X_LOD[i + 1];
        T most = -INFINITY, total = 0;
        for (int64_t r = from; r < to; ++r) most = X[r] > most ? X[r] : most;
        for (int64_t r = from; r < to; ++r) total += Out[r] = exp(X[r] - most);
        for (int64_t r = from; r < to; ++r) Out[r] /= total;
    }
}
