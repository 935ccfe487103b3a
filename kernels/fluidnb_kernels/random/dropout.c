// Dropout of a trained network, and gradients of dropout.

// Out = X · STAYS
void dropout(const T *X, T *Out, uint8_t *Mask) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) Out[i] = X[i] * STAYS;
    for (ptrdiff_t i = 0; Mask && i < COUNT; ++i) Mask[i] = 1;
}

// dX = dOut times what the element of X was multiplied with
void dropout_grad(const uint8_t *Mask, const T *Out_GRAD, T *X_GRAD) {
    (void)Mask;
    for (ptrdiff_t i = 0; i < COUNT; ++i) X_GRAD[i] = VALUE;
}
