// A loss of rows of N elements.

// Out = the sum over a row of SIGMA2 · d² / 2 where |d| < 1 / SIGMA2, |d| - 1 / (2 · SIGMA2) elsewhere, with weights
void smooth_l1_loss(const T *X, const T *Y, const T *InsideWeight, const T *OutsideWeight, T *Diff, T *Out) {
    for (ptrdiff_t row = 0; row < ROWS; ++row) {
        T total = 0;
        for (ptrdiff_t i = row * N; i < (row + 1) * N; ++i) {
            const T d = (X[i] - Y[i]) * (InsideWeight ? InsideWeight[i] : (T)1), size = fabs(d);
            if (Diff) Diff[i] = d;
            const T loss = size * SIGMA2 < (T)1 ? (T)0.5 * SIGMA2 * d * d : size - (T)0.5 / SIGMA2;
            total += loss * (OutsideWeight ? OutsideWeight[i] : (T)1);
        }
        Out[row] = total;
    }
}

// dX = dOut · SIGMA2 · d held between -1 and 1, times both weights; dY = -dX
void smooth_l1_loss_grad(const T *Diff, const T *InsideWeight, const T *OutsideWeight, const T *Out_GRAD, T *X_GRAD,
                         T *Y_GRAD) {
    for (ptrdiff_t i = 0; i < ROWS * N; ++i) {
        const T steep = Diff[i] * SIGMA2, held = steep < (T)-1 ? (T)-1 : steep > (T)1 ? (T)1 : steep;
        const T weight = (InsideWeight ? InsideWeight[i] : (T)1) * (OutsideWeight ? OutsideWeight[i] : (T)1);
        const T g = held * weight * Out_GRAD[i / N];
        if (X_GRAD) X_GRAD[i] = g;
        if (Y_GRAD) Y_GRAD[i] = -g;
    }
}
