// Values held between two bounds.

// Out = min(max(X, LOW), HIGH)
void clip(const T *X, const T *Min, const T *Max, T *Out) {
    (void)Min, (void)Max;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = X[i] < LOW ? LOW : X[i];
        Out[i] = x > HIGH ? HIGH : x;
    }
}

// dX = dOut where LOW < X < HIGH, 0 elsewhere
void clip_grad(const T *X, const T *Min, const T *Max, const T *Out_GRAD, T *X_GRAD) {
    (void)Min, (void)Max;
    for (ptrdiff_t i = 0; i < COUNT; ++i) X_GRAD[i] = X[i] > LOW && X[i] < HIGH ? Out_GRAD[i] : (T)0;
}
