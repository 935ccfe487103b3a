// Elements chosen by a condition.

// Out = X where Condition holds, Y elsewhere
void where(const bool *Condition, const T *X, const T *Y, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) Out[i] = Condition[i] ? X[i] : Y[i];
}

// dX = dOut where Condition holds, dY = dOut elsewhere
void where_grad(const bool *Condition, const T *Out_GRAD, T *X_GRAD, T *Y_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        if (X_GRAD) X_GRAD[i] = Condition[i] ? Out_GRAD[i] : (T)0;
        if (Y_GRAD) Y_GRAD[i] = Condition[i] ? (T)0 : Out_GRAD[i];
    }
}
