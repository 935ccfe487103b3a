// Images in another size. Row i of Out is of rows H_NEAR[4 · i] to H_NEAR[4 · i + 3] of X, and the share of each is
// H_SHARE / 2^30; X_N, X_C, X_H and X_W are the distances of images, channels, rows and elements of X, Y_N, … of Out.
#include "interp.c"

// Out = the sixteen elements of X around each place, by their shares
void bicubic(const T *X, T *Out) {
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t c = 0; c < C; ++c)
            for (ptrdiff_t i = 0; i < OH; ++i)
                for (ptrdiff_t j = 0; j < OW; ++j) {
                    T total = 0;
                    for (ptrdiff_t h = 4 * i; h < 4 * i + 4; ++h) {
                        const T *row = X + n * X_N + c * X_C + H_NEAR[h] * X_H;
                        T line = 0;
                        for (ptrdiff_t w = 4 * j; w < 4 * j + 4; ++w) line += row[W_NEAR[w] * X_W] * share_of(W_SHARE[w]);
                        total += line * share_of(H_SHARE[h]);
                    }
                    Out[n * Y_N + c * Y_C + i * Y_H + j * Y_W] = total;
                }
}
