// Pooling of images and volumes. Window i along the height goes from H_FROM[i] to before H_TO[i] and counts as H_COUNT[i]
// rows; an image has one slice along the depth. X_N, X_C, X_D, X_H and X_W are the distances of images, channels, slices,
// rows and elements of X, Y_N, … those of Out.

// Out = the largest element, or the mean, of each window
void pool(const T *X, T *Out) {
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t c = 0; c < C; ++c)
            for (ptrdiff_t k = 0; k < OD; ++k)
                for (ptrdiff_t i = 0; i < OH; ++i)
                    for (ptrdiff_t j = 0; j < OW; ++j) {
                        const T *x = X + n * X_N + c * X_C;
                        T most = LOWEST, total = 0;
                        for (ptrdiff_t d = D_FROM[k]; d < D_TO[k]; ++d)
                            for (ptrdiff_t h = H_FROM[i]; h < H_TO[i]; ++h)
                                for (ptrdiff_t w = W_FROM[j]; w < W_TO[j]; ++w) {
                                    const T value = x[d * X_D + h * X_H + w * X_W];
                                    most = value > most ? value : most;
                                    total += value;
                                }
                        const ptrdiff_t to = n * Y_N + c * Y_C + k * Y_D + i * Y_H + j * Y_W;
                        Out[to] = LARGEST ? most : total / (T)(D_COUNT[k] * H_COUNT[i] * W_COUNT[j]);
                    }
}

// dX = dOut where an element was the first largest one of its window, or its share of it
void pool_grad(const T *X, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t c = 0; c < C; ++c)
            for (ptrdiff_t k = 0; k < OD; ++k)
                for (ptrdiff_t i = 0; i < OH; ++i)
                    for (ptrdiff_t j = 0; j < OW; ++j) {
                        const ptrdiff_t from = n * X_N + c * X_C;
                        const T g = Out_GRAD[n * Y_N + c * Y_C + k * Y_D + i * Y_H + j * Y_W];
                        const T share = LARGEST ? g : g / (T)(D_COUNT[k] * H_COUNT[i] * W_COUNT[j]);
                        ptrdiff_t best = -1;
                        for (ptrdiff_t d = D_FROM[k]; d < D_TO[k]; ++d)
                            for (ptrdiff_t h = H_FROM[i]; h < H_TO[i]; ++h)
                                for (ptrdiff_t w = W_FROM[j]; w < W_TO[j]; ++w) {
                                    const ptrdiff_t at = from + d * X_D + h * X_H + w * X_W;
                                    if (!LARGEST) X_GRAD[at] += share;
                                    if (LARGEST && (best < 0 || X[at] > X[best])) best = at;
                                }
                        if (best >= 0) X_GRAD[best] += share;
                    }
}

// Out = the largest element of each window, Mask = its place in the plane; -1 for none
void pool_with_index(const T *X, T *Out, I *Mask) {
    for (ptrdiff_t p = 0; p < PLANES; ++p)
        for (ptrdiff_t k = 0; k < OD; ++k)
            for (ptrdiff_t i = 0; i < OH; ++i)
                for (ptrdiff_t j = 0; j < OW; ++j) {
                    const ptrdiff_t to = ((p * OD + k) * OH + i) * OW + j;
                    T most = LOWEST;
                    ptrdiff_t best = -1;
                    for (ptrdiff_t d = D_FROM[k]; d < D_TO[k]; ++d)
                        for (ptrdiff_t h = H_FROM[i]; h < H_TO[i]; ++h)
                            for (ptrdiff_t w = W_FROM[j]; w < W_TO[j]; ++w) {
                                const ptrdiff_t at = (d * H + h) * W + w;
                                if (X[p * PLANE + at] > most) {
                                    most = X[p * PLANE + at];
                                    best = at;
                                }
                            }
                    if (Out) Out[to] = most;
                    if (Mask) Mask[to] = (I)best;
                }
}
