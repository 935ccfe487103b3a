// Images in another size. Row i of Out lies between rows H_LOW[i] and H_HIGH[i] of X, and the share of the second is
// H_SHARE[i] / 2^30; X_N, X_C, X_H and X_W are the distances of images, channels, rows and elements of X, Y_N, … of Out.

// the share of a second neighbour
static T share_of(ptrdiff_t share) {
    return (T)share / (T)1073741824;
}

// Out = the elements of X around each place, by how near they are
void interpolated(const T *X, T *Out) {
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t c = 0; c < C; ++c)
            for (ptrdiff_t i = 0; i < OH; ++i)
                for (ptrdiff_t j = 0; j < OW; ++j) {
                    const T *low = X + n * X_N + c * X_C + H_LOW[i] * X_H, *high = low + (H_HIGH[i] - H_LOW[i]) * X_H;
                    const ptrdiff_t left = W_LOW[j] * X_W, right = W_HIGH[j] * X_W;
                    const T down = share_of(H_SHARE[i]), across = share_of(W_SHARE[j]);
                    const T above = low[left] * ((T)1 - down) + high[left] * down;
                    const T below = low[right] * ((T)1 - down) + high[right] * down;
                    Out[n * Y_N + c * Y_C + i * Y_H + j * Y_W] = above * ((T)1 - across) + below * across;
                }
}

// dX = the sum of what each element of X has given, by its share
void interpolated_grad(const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t c = 0; c < C; ++c)
            for (ptrdiff_t i = 0; i < OH; ++i)
                for (ptrdiff_t j = 0; j < OW; ++j) {
                    T *low = X_GRAD + n * X_N + c * X_C + H_LOW[i] * X_H, *high = low + (H_HIGH[i] - H_LOW[i]) * X_H;
                    const ptrdiff_t left = W_LOW[j] * X_W, right = W_HIGH[j] * X_W;
                    const T down = share_of(H_SHARE[i]), across = share_of(W_SHARE[j]);
                    const T g = Out_GRAD[n * Y_N + c * Y_C + i * Y_H + j * Y_W];
                    low[left] += g * ((T)1 - down) * ((T)1 - across);
                    low[right] += g * ((T)1 - down) * across;
                    high[left] += g * down * ((T)1 - across);
                    high[right] += g * down * across;
                }
}
