// Normalization of ROWS rows of N elements. AT is the place of element i of a row, FACTOR the place of its scale and bias,
// of which there are FACTORS.

// Y = (X - mean) / sqrt(variance + EPSILON) · Scale + Bias, with mean and variance of each row
void row_norm(const T *X, const T *Scale, const T *Bias, T *Y, T *Mean, T *Variance, T *SavedMean, T *SavedVariance) {
    for (ptrdiff_t row = 0; row < ROWS; ++row) {
        double total = 0, squares = 0;
        for (ptrdiff_t i = 0; i < N; ++i) total += (double)X[AT];
        const T mean = (T)(total / (double)N);
        for (ptrdiff_t i = 0; i < N; ++i) squares += (double)((X[AT] - mean) * (X[AT] - mean));
        const T variance = (T)(squares / (double)N), inverse = (T)1 / sqrt(variance + EPSILON);
        for (ptrdiff_t i = 0; i < N; ++i) {
            const T normal = (X[AT] - mean) * inverse;
            Y[AT] = normal * (Scale ? Scale[FACTOR] : (T)1) + (Bias ? Bias[FACTOR] : (T)0);
        }
        if (Mean) Mean[row] = mean;
        if (Variance) Variance[row] = variance;
        if (SavedMean) SavedMean[row] = mean;
        if (SavedVariance) SavedVariance[row] = inverse;
    }
}

// dScale = Σ dY · x̂ and dBias = Σ dY over rows; with h = dY · Scale, dX = (h - mean h - x̂ · mean(h · x̂)) / σ
void row_norm_grad(const T *X, const T *Scale, const T *Mean, const T *Variance, const T *SavedMean,
                   const T *SavedVariance, const T *Y_GRAD, T *X_GRAD, T *Scale_GRAD, T *Bias_GRAD) {
    for (ptrdiff_t i = 0; Scale_GRAD && i < FACTORS; ++i) Scale_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Bias_GRAD && i < FACTORS; ++i) Bias_GRAD[i] = 0;
    for (ptrdiff_t row = 0; row < ROWS; ++row) {
        const T mean = Mean ? Mean[row] : SavedMean[row];
        const T inverse = Variance ? (T)1 / sqrt(Variance[row] + EPSILON) : SavedVariance[row];
        double total = 0, products = 0;
        for (ptrdiff_t i = 0; i < N; ++i) {
            const T g = Y_GRAD[AT], normal = (X[AT] - mean) * inverse, h = g * (Scale ? Scale[FACTOR] : (T)1);
            if (Scale_GRAD) Scale_GRAD[FACTOR] += g * normal;
            if (Bias_GRAD) Bias_GRAD[FACTOR] += g;
            total += (double)h;
            products += (double)(h * normal);
        }
        const T mean_h = (T)(total / (double)N), mean_product = (T)(products / (double)N);
        for (ptrdiff_t i = 0; X_GRAD && i < N; ++i) {
            const T h = Y_GRAD[AT] * (Scale ? Scale[FACTOR] : (T)1);
            X_GRAD[AT] = (h - mean_h - (X[AT] - mean) * inverse * mean_product) * inverse;
        }
    }
}
