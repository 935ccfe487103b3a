// The largest and smallest elements of lines of N elements that are INNER apart, and their places.

// Out, Indices = the K first elements of each line in falling order, or rising; of equal ones the first
void top(const T *X, T *Out, I *Indices) {
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t j = 0; j < INNER; ++j) {
            const T *x = X + o * N * INNER + j;
            ptrdiff_t last = -1;
            for (ptrdiff_t k = 0; k < K; ++k) {
                ptrdiff_t best = -1;
                for (ptrdiff_t i = 0; i < N; ++i) {
                    const T value = x[i * INNER];
                    const bool left = last < 0 || value BEHIND x[last * INNER] || (value == x[last * INNER] && i > last);
                    if (left && (best < 0 || x[best * INNER] BEHIND value)) best = i;
                }
                const ptrdiff_t to = (o * K + k) * INNER + j;
                last = best < 0 ? last : best;
                if (Out) Out[to] = x[last * INNER];
                if (Indices) Indices[to] = (I)last;
            }
        }
}

// dX = dOut at the places from which Out was taken, 0 elsewhere
void top_grad(const I *Indices, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < OUTER * N * INNER; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t k = 0; k < K; ++k)
            for (ptrdiff_t j = 0; j < INNER; ++j) {
                const ptrdiff_t from = (o * K + k) * INNER + j;
                X_GRAD[(o * N + (ptrdiff_t)Indices[from]) * INNER + j] = Out_GRAD[from];
            }
}

// Out = where the largest or smallest element of each line is, the first of equal ones
void extreme(const T *X, I *Out) {
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t j = 0; j < INNER; ++j) {
            const T *x = X + o * N * INNER + j;
            ptrdiff_t best = 0;
            for (ptrdiff_t i = 1; i < N; ++i)
                if (x[best * INNER] BEHIND x[i * INNER]) best = i;
            Out[o * INNER + j] = (I)best;
        }
}

// Out, Indices = the elements of each line in order, and where they were; equal ones keep their order
void argsort(const T *X, T *Out, I *Indices) {
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t j = 0; j < INNER; ++j)
            for (ptrdiff_t i = 0; i < N; ++i) {
                const ptrdiff_t line = o * N * INNER + j;
                const T a = X[line + i * INNER];
                ptrdiff_t rank = 0;
                for (ptrdiff_t k = 0; k < N; ++k) {
                    const T b = X[line + k * INNER];
                    rank += k < i ? !(A_FIRST) : (B_FIRST);
                }
                if (Out) Out[line + rank * INNER] = a;
                if (Indices) Indices[line + rank * INNER] = (I)i;
            }
}
