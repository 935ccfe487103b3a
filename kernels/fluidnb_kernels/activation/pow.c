// Powers of each element.

// Out = X to the power of FACTOR
void pow_of_each(const T *X, const T *FactorTensor, T *Out) {
    (void)FactorTensor;
    for (ptrdiff_t i = 0; i < COUNT; ++i) Out[i] = SQUARE ? X[i] * X[i] : pow(X[i], FACTOR);
}

// dX = dOut · FACTOR · X^(FACTOR - 1), and 0 where FACTOR is 0
void pow_of_each_grad(const T *X, const T *FactorTensor, const T *Out_GRAD, T *X_GRAD) {
    (void)FactorTensor;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T slope = SQUARE ? (T)2 * X[i] : FACTOR * pow(X[i], FACTOR - (T)1);
        X_GRAD[i] = NOTHING ? (T)0 : slope * Out_GRAD[i];
    }
}
