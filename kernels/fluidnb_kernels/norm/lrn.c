// Normalization over BEFORE channels before each and BEHIND behind it: lines of C elements that are INNER apart.

// MidOut = K + ALPHA · the sum of X² over the channels around; Out = X · MidOut^-BETA
void lrn(const T *X, T *Out, T *MidOut) {
    for (ptrdiff_t i = 0; i < OUTER * C * INNER; ++i) {
        const ptrdiff_t c = i / INNER % C;
        T total = 0;
        for (ptrdiff_t k = c < BEFORE ? -c : -BEFORE; k <= BEHIND && c + k < C; ++k)
            total += X[i + k * INNER] * X[i + k * INNER];
        const T middle = K + ALPHA * total;
        if (MidOut) MidOut[i] = middle;
        Out[i] = X[i] * pow(middle, -BETA);
    }
}

// dX = dOut · MidOut^-BETA - 2 · ALPHA · BETA · X · the sum of dOut · Out / MidOut over the channels around
void lrn_grad(const T *X, const T *Out, const T *MidOut, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < OUTER * C * INNER; ++i) {
        const ptrdiff_t c = i / INNER % C;
        T total = 0;
        for (ptrdiff_t k = c < BEHIND ? -c : -BEHIND; k <= BEFORE && c + k < C; ++k) {
            const ptrdiff_t at = i + k * INNER;
            total += Out_GRAD[at] * Out[at] / MidOut[at];
        }
        X_GRAD[i] = Out_GRAD[i] * pow(MidOut[i], -BETA) - (T)2 * ALPHA * BETA * X[i] * total;
    }
}
