// Batch normalization: X is [OUTER, C, INNER], and each of the C channels is normalized.

// Y = (X - mean) / sqrt(variance + EPSILON) · Scale + Bias, with the moments of the batch or the running ones
void batch_norm(const T *X, const T *Scale, const T *Bias, const T *Mean, const T *Variance, const T *MomentumTensor,
                T *Y, T *MeanOut, T *VarianceOut, T *SavedMean, T *SavedVariance) {
    const T stays = MomentumTensor ? MomentumTensor[0] : MOMENTUM;
    (void)stays;
    for (ptrdiff_t c = 0; c < C; ++c) {
        T mean = Mean[c], variance = Variance[c];
        if (!FIXED && !ALONE) {
            double total = 0, squares = 0;
            for (ptrdiff_t o = 0; o < OUTER; ++o)
                for (ptrdiff_t i = 0; i < INNER; ++i) total += (double)X[(o * C + c) * INNER + i];
            mean = (T)(total / (OUTER * INNER));
            for (ptrdiff_t o = 0; o < OUTER; ++o)
                for (ptrdiff_t i = 0; i < INNER; ++i) {
                    const double centred = (double)(X[(o * C + c) * INNER + i] - mean);
                    squares += centred * centred;
                }
            variance = (T)(squares / (OUTER * INNER));
        }
        if (MeanOut) MeanOut[c] = FIXED || ALONE ? mean : stays * Mean[c] + ((T)1 - stays) * mean;
        if (VarianceOut) VarianceOut[c] = FIXED || ALONE ? variance : stays * Variance[c] + ((T)1 - stays) * variance;
        const T inverse = (T)1 / sqrt(variance + EPSILON);
        if (SavedMean) SavedMean[c] = mean;
        if (SavedVariance) SavedVariance[c] = inverse;
        const T factor = Scale ? inverse * Scale[c] : inverse, added = Bias ? Bias[c] : (T)0;
        for (ptrdiff_t o = 0; o < OUTER; ++o)
            for (ptrdiff_t i = 0; i < INNER; ++i) {
                const ptrdiff_t at = (o * C + c) * INNER + i;
                Y[at] = ALONE ? X[at] : (X[at] - mean) * factor + added;
            }
    }
}

// dScale = Σ dY · x̂; dBias = Σ dY; dX = Scale / σ · (dY - mean dY - x̂ · mean(dY · x̂)), Scale / σ · dY where moments
// are fixed
void batch_norm_grad(const T *X, const T *Scale, const T *SavedMean, const T *SavedVariance, const T *Y_GRAD,
                     T *X_GRAD, T *Scale_GRAD, T *Bias_GRAD) {
    for (ptrdiff_t c = 0; c < C; ++c) {
        const T mean = SavedMean[c], inverse = SavedVariance[c];
        double total = 0, products = 0;
        for (ptrdiff_t o = 0; o < OUTER; ++o)
            for (ptrdiff_t i = 0; i < INNER; ++i) {
                const ptrdiff_t at = (o * C + c) * INNER + i;
                total += (double)Y_GRAD[at];
                products += (double)(Y_GRAD[at] * ((X[at] - mean) * inverse));
            }
        if (Scale_GRAD) Scale_GRAD[c] = ALONE ? (T)0 : (T)products;
        if (Bias_GRAD) Bias_GRAD[c] = ALONE ? (T)0 : (T)total;
        if (!X_GRAD) continue;
        const T factor = Scale ? inverse * Scale[c] : inverse;
        const T mean_g = FIXED ? (T)0 : (T)(total / (OUTER * INNER));
        const T mean_product = FIXED ? (T)0 : (T)(products / (OUTER * INNER));
        for (ptrdiff_t o = 0; o < OUTER; ++o)
            for (ptrdiff_t i = 0; i < INNER; ++i) {
                const ptrdiff_t at = (o * C + c) * INNER + i;
                const T slope = factor * (Y_GRAD[at] - mean_g - (X[at] - mean) * inverse * mean_product);
                X_GRAD[at] = ALONE ? Y_GRAD[at] : slope;
            }
    }
}
