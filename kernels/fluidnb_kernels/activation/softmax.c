// softmax and its gradient, along lines of N elements that are INNER apart.

// Out = exp(X - max(X)) / sum(exp(X - max(X)))
void softmax(const T *X, T *Out) {
    for (ptrdiff_t i = 0; i < OUTER; ++i)
        for (ptrdiff_t j = 0; j < INNER; ++j) {
            const T *x = X + i * N * INNER + j;
            T *y = Out + i * N * INNER + j;
            T most = x[0], total = 0;
            for (ptrdiff_t k = 1; k < N; ++k) most = x[k * INNER] > most ? x[k * INNER] : most;
            for (ptrdiff_t k = 0; k < N; ++k) total += y[k * INNER] = exp(x[k * INNER] - most);
            for (ptrdiff_t k = 0; k < N; ++k) y[k * INNER] /= total;
        }
}

// dX = (dOut - sum(dOut · Out)) · Out
void softmax_grad(const T *Out, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < OUTER; ++i)
        for (ptrdiff_t j = 0; j < INNER; ++j) {
            const ptrdiff_t from = i * N * INNER + j;
            T total = 0;
            for (ptrdiff_t k = 0; k < N; ++k) total += Out[from + k * INNER] * Out_GRAD[from + k * INNER];
            for (ptrdiff_t k = 0; k < N; ++k) {
                const ptrdiff_t at = from + k * INNER;
                X_GRAD[at] = (Out_GRAD[at] - total) * Out[at];
            }
        }
}

// Out = X - max(X) - log(sum(exp(X - max(X))))
void log_softmax(const T *X, T *Out) {
    for (ptrdiff_t i = 0; i < OUTER; ++i)
        for (ptrdiff_t j = 0; j < INNER; ++j) {
            const T *x = X + i * N * INNER + j;
            T most = x[0], total = 0;
            for (ptrdiff_t k = 1; k < N; ++k) most = x[k * INNER] > most ? x[k * INNER] : most;
            for (ptrdiff_t k = 0; k < N; ++k) total += exp(x[k * INNER] - most);
            const T level = log(total);
            for (ptrdiff_t k = 0; k < N; ++k) Out[i * N * INNER + j + k * INNER] = x[k * INNER] - most - level;
        }
}

// dX = dOut - exp(Out) · sum(dOut)
void log_softmax_grad(const T *Out, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < OUTER; ++i)
        for (ptrdiff_t j = 0; j < INNER; ++j) {
            const ptrdiff_t from = i * N * INNER + j;
            T total = 0;
            for (ptrdiff_t k = 0; k < N; ++k) total += Out_GRAD[from + k * INNER];
            for (ptrdiff_t k = 0; k < N; ++k) {
                const ptrdiff_t at = from + k * INNER;
                X_GRAD[at] = Out_GRAD[at] - exp(Out[at]) * total;
            }
        }
}
