// Functions of each element.

// Out = VALUE
void scale(const T *X, const T *ScaleTensor, T *Out) {
    (void)ScaleTensor;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = X[i];
        Out[i] = (T)(VALUE);
    }
}
