// Images and volumes with a border. Row i of Out is row H_AT[i] of X, or -1 where it is of VALUE; an image has one slice
// along the depth. X_N, X_C, X_D, X_H and X_W are the distances of images, channels, slices, rows and elements of X,
// Y_N, … those of Out.

// Out = X with a border
void pad_images(const T *X, T *Out) {
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t c = 0; c < C; ++c)
            for (ptrdiff_t k = 0; k < OD; ++k)
                for (ptrdiff_t i = 0; i < OH; ++i)
                    for (ptrdiff_t j = 0; j < OW; ++j) {
                        const bool inside = D_AT[k] >= 0 && H_AT[i] >= 0 && W_AT[j] >= 0;
                        const ptrdiff_t from = n * X_N + c * X_C + D_AT[k] * X_D + H_AT[i] * X_H + W_AT[j] * X_W;
                        Out[n * Y_N + c * Y_C + k * Y_D + i * Y_H + j * Y_W] = inside ? X[from] : (T)VALUE;
                    }
}

// dX = dOut without its border; what the border repeats of X gets the gradient of that too
void pad_images_grad(const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t c = 0; c < C; ++c)
            for (ptrdiff_t k = 0; k < OD; ++k)
                for (ptrdiff_t i = 0; i < OH; ++i)
                    for (ptrdiff_t j = 0; j < OW; ++j)
                        if (D_AT[k] >= 0 && H_AT[i] >= 0 && W_AT[j] >= 0)
                            X_GRAD[n * X_N + c * X_C + D_AT[k] * X_D + H_AT[i] * X_H + W_AT[j] * X_W] +=
                                Out_GRAD[n * Y_N + c * Y_C + k * Y_D + i * Y_H + j * Y_W];
}
