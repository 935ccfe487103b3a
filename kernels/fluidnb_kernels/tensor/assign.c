// Copies.

// Out = X
void assign(const T *X, T *Out) {
    memmove(Out, X, COUNT * sizeof(T));
}

// Out = X in another dtype
void cast(const I *X, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) Out[i] = (T)X[i];
}
