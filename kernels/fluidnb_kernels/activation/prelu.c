// A rectifier with a slope for each of C elements or channels: X is [OUTER, C, INNER].

// Out = X where X > 0, Alpha · X elsewhere
void prelu(const T *X, const T *Alpha, T *Out) {
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t c = 0; c < C; ++c)
            for (ptrdiff_t i = 0; i < INNER; ++i) {
                const T x = X[(o * C + c) * INNER + i];
                Out[(o * C + c) * INNER + i] = x > (T)0 ? x : Alpha[c] * x;
            }
}

// dX = dOut where X > 0, Alpha · dOut elsewhere; dAlpha = X · dOut where X <= 0, summed
void prelu_grad(const T *X, const T *Alpha, const T *Out_GRAD, T *X_GRAD, T *Alpha_GRAD) {
    for (ptrdiff_t c = 0; Alpha_GRAD && c < C; ++c) Alpha_GRAD[c] = 0;
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t c = 0; c < C; ++c) {
            T total = 0;
            for (ptrdiff_t i = 0; i < INNER; ++i) {
                const ptrdiff_t at = (o * C + c) * INNER + i;
                const T x = X[at], g = Out_GRAD[at];
                if (X_GRAD) X_GRAD[at] = x > (T)0 ? g : Alpha[c] * g;
                total += x > (T)0 ? (T)0 : x * g;
            }
            if (Alpha_GRAD) Alpha_GRAD[c] += total;
        }
}
