// Sums of all elements up to each, along lines of N elements that are INNER apart.

// Writes the sums of one line, from its end where backwards; exclusive: each without its own element.
static void sums_of_line(const T *x, T *out, ptrdiff_t n, ptrdiff_t inner, bool backwards, bool exclusive) {
    T total = 0;
    for (ptrdiff_t k = 0; k < n; ++k) {
        const ptrdiff_t at = (backwards ? n - 1 - k : k) * inner;
        const T value = x[at];
        if (exclusive) out[at] = total;
        total += value;
        if (!exclusive) out[at] = total;
    }
}

// Out[i] = X[0] + … + X[i]
void cumsum(const T *X, T *Out) {
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t j = 0; j < INNER; ++j)
            sums_of_line(X + o * N * INNER + j, Out + o * N * INNER + j, N, INNER, BACKWARDS, EXCLUSIVE);
}

// dX = the sums of dOut from the other end
void cumsum_grad(const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t o = 0; o < OUTER; ++o)
        for (ptrdiff_t j = 0; j < INNER; ++j)
            sums_of_line(Out_GRAD + o * N * INNER + j, X_GRAD + o * N * INNER + j, N, INNER, !BACKWARDS, EXCLUSIVE);
}
