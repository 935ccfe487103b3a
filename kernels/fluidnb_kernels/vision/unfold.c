// Windows of images as columns. X is PLANES planes of H rows and W columns; a window has KH rows and KW columns.

// Y = the elements of all windows, 0 beyond the image
void unfold(const T *X, T *Y) {
    for (ptrdiff_t p = 0; p < PLANES; ++p)
        for (ptrdiff_t k = 0; k < KH * KW; ++k)
            for (ptrdiff_t i = 0; i < OH; ++i)
                for (ptrdiff_t j = 0; j < OW; ++j) {
                    const ptrdiff_t h = i * H_STRIDE + k / KW * H_DILATION - H_LOW;
                    const ptrdiff_t w = j * W_STRIDE + k % KW * W_DILATION - W_LOW;
                    const bool inside = h >= 0 && h < H && w >= 0 && w < W;
                    *Y++ = inside ? X[(p * H + h) * W + w] : (T)0;
                }
}

// dX = the sum of the gradients of all windows that see an element
void unfold_grad(const T *Y_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < PLANES * H * W; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t p = 0; p < PLANES; ++p)
        for (ptrdiff_t k = 0; k < KH * KW; ++k)
            for (ptrdiff_t i = 0; i < OH; ++i)
                for (ptrdiff_t j = 0; j < OW; ++j, ++Y_GRAD) {
                    const ptrdiff_t h = i * H_STRIDE + k / KW * H_DILATION - H_LOW;
                    const ptrdiff_t w = j * W_STRIDE + k % KW * W_DILATION - W_LOW;
                    if (h >= 0 && h < H && w >= 0 && w < W) X_GRAD[(p * H + h) * W + w] += *Y_GRAD;
                }
}
