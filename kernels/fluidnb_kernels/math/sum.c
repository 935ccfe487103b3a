// The sum of tensors.

// Out = X[0] + X[1] + …
void sum(const T *const *X, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        T total = X[0][i];
        for (ptrdiff_t k = 1; k < TERMS; ++k) total = (T)(total + X[k][i]);
        Out[i] = total;
    }
}
