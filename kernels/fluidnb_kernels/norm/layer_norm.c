// Normalization of ROWS rows of N elements.

// Y = (X - mean) / sqrt(variance + EPSILON) · Scale + Bias, with mean and variance of each row
void layer_norm(const T *X, const T *Scale, const T *Bias, T *Y, T *Mean, T *Variance) {
    for (ptrdiff_t row = 0; row < ROWS; ++row) {
        const T *x = X + row * N;
        double total = 0, squares = 0;
        for (ptrdiff_t i = 0; i < N; ++i) total += (double)x[i];
        const T mean = (T)(total / N);
        for (ptrdiff_t i = 0; i < N; ++i) squares += (double)((x[i] - mean) * (x[i] - mean));
        const T variance = (T)(squares / N), inverse = (T)1 / sqrt(variance + EPSILON);
        for (ptrdiff_t i = 0; i < N; ++i) {
            const T normal = (x[i] - mean) * inverse;
            Y[row * N + i] = normal * (Scale ? Scale[i] : (T)1) + (Bias ? Bias[i] : (T)0);
        }
        if (Mean) Mean[row] = mean;
        if (Variance) Variance[row] = variance;
    }
}

// dScale = Σ dY · x̂ and dBias = Σ dY over rows; with h = dY · Scale, dX = (h - mean h - x̂ · mean(h · x̂)) / σ
void layer_norm_grad(const T *X, const T *Scale, const T *Mean, const T *Variance, const T *Y_GRAD, T *X_GRAD,
                     T *Scale_GRAD, T *Bias_GRAD) {
    for (ptrdiff_t i = 0; Scale_GRAD && i < N; ++i) Scale_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Bias_GRAD && i < N; ++i) Bias_GRAD[i] = 0;
    for (ptrdiff_t row = 0; row < ROWS; ++row) {
        const T *x = X + row * N, *g = Y_GRAD + row * N;
        const T mean = Mean[row], inverse = (T)1 / sqrt(Variance[row] + EPSILON);
        for (ptrdiff_t i = 0; Scale_GRAD && i < N; ++i) Scale_GRAD[i] += g[i] * ((x[i] - mean) * inverse);
        for (ptrdiff_t i = 0; Bias_GRAD && i < N; ++i) Bias_GRAD[i] += g[i];
        if (!X_GRAD) continue;
        double total = 0, products = 0;
        for (ptrdiff_t i = 0; i < N; ++i) {
            const T h = g[i] * (Scale ? Scale[i] : (T)1);
            total += (double)h;
            products += (double)(h * ((x[i] - mean) * inverse));
        }
        const T mean_h = (T)(total / N), mean_product = (T)(products / N);
        for (ptrdiff_t i = 0; i < N; ++i) {
            const T h = g[i] * (Scale ? Scale[i] : (T)1);
            X_GRAD[row * N + i] = (h - mean_h - (x[i] - mean) * inverse * mean_product) * inverse;
        }
    }
}
