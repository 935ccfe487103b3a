// Pooling of images. Window i along the height goes from H_FROM[i] to before H_TO[i] and counts as H_COUNT[i] rows;
// X_N, X_C, X_H and X_W are the distances of images, channels, rows and elements of X, Y_N, … those of Out.

// Out = the largest element, or the mean, of each window
void pool2d(const T *X, T *Out) {
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t c = 0; c < C; ++c)
            for (ptrdiff_t i = 0; i < OH; ++i)
                for (ptrdiff_t j = 0; j < OW; ++j) {
                    const T *x = X + n * X_N + c * X_C;
                    T most = LOWEST, total = 0;
                    for (ptrdiff_t h = H_FROM[i]; h < H_TO[i]; ++h)
                        for (ptrdiff_t w = W_FROM[j]; w < W_TO[j]; ++w) {
                            const T value = x[h * X_H + w * X_W];
                            most = value > most ? value : most;
                            total += value;
                        }
                    Out[n * Y_N + c * Y_C + i * Y_H + j * Y_W] = LARGEST ? most : total / (T)(H_COUNT[i] * W_COUNT[j]);
                }
}

// dX = dOut where an element was the first largest one of its window, or its share of it
void pool2d_grad(const T *X, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t c = 0; c < C; ++c)
            for (ptrdiff_t i = 0; i < OH; ++i)
                for (ptrdiff_t j = 0; j < OW; ++j) {
                    const ptrdiff_t from = n * X_N + c * X_C;
                    const T g = Out_GRAD[n * Y_N + c * Y_C + i * Y_H + j * Y_W];
                    const T share = LARGEST ? g : g / (T)(H_COUNT[i] * W_COUNT[j]);
                    ptrdiff_t best = -1;
                    for (ptrdiff_t h = H_FROM[i]; h < H_TO[i]; ++h)
                        for (ptrdiff_t w = W_FROM[j]; w < W_TO[j]; ++w) {
                            const ptrdiff_t at = from + h * X_H + w * X_W;
                            if (!LARGEST) X_GRAD[at] += share;
                            if (LARGEST && (best < 0 || X[at] > X[best])) best = at;
                        }
                    if (best >= 0) X_GRAD[best] += share;
                }
}
