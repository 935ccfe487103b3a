// Convolutions as loops over the elements of a filter, along rows of the image of windows. X_N, X_C, X_H and X_W are the
// distances of images, channels, rows and elements of the image, Y_N, … those of the image of windows.
#include "../math/matmul.c"

// the first window whose element at an offset from its beginning is in the image
static ptrdiff_t first_window(ptrdiff_t offset, ptrdiff_t stride) {
    return offset < 0 ? (stride - 1 - offset) / stride : 0;
}

// behind the last window whose element at an offset from its beginning is in the image
static ptrdiff_t last_window(ptrdiff_t offset, ptrdiff_t stride, ptrdiff_t size, ptrdiff_t windows) {
    const ptrdiff_t last = size > offset ? (size - offset + stride - 1) / stride : 0;
    return last < windows ? last : windows;
}

// Output[n, f] = the sum over channels and elements of windows of Input · Filter[f]
void conv2d(const T *Input, const T *Filter, T *Output) {
    for (ptrdiff_t i = 0; i < N * F * OH * OW; ++i) Output[i] = 0;
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t f = 0; f < F; ++f)
            for (ptrdiff_t oh = 0; oh < OH; ++oh) {
                T *y = Output + n * Y_N + f * Y_C + oh * Y_H;
                for (ptrdiff_t c = 0; c < C; ++c)
                    for (ptrdiff_t kh = 0; kh < KH; ++kh) {
                        const ptrdiff_t h = oh * SH + kh * DH - PH;
                        if (h < 0 || h >= H) continue;
                        const T *x = Input + n * X_N + (f / (F / GROUPS) * C + c) * X_C + h * X_H;
                        for (ptrdiff_t kw = 0; kw < KW; ++kw) {
                            const T w = Filter[((f * C + c) * KH + kh) * KW + kw];
                            const ptrdiff_t offset = kw * DW - PW, last = last_window(offset, SW, W, OW);
                            for (ptrdiff_t ow = first_window(offset, SW); ow < last; ++ow)
                                y[ow * Y_W] += w * x[(ow * SW + offset) * X_W];
                        }
                    }
            }
}

// The same as products: the elements of many windows are the columns of a matrix, which all filters of a group multiply.
void conv2d_by_products(const T *Input, const T *Filter, T *Output) {
#ifdef USE_CBLAS
    enum { MANY = OH * OW < 256 ? OH * OW : 256, K = C * KH * KW, M = F / GROUPS };
#else
    enum { MANY = 64 / sizeof(T), K = C * KH * KW, M = F / GROUPS };
#endif
    static T columns[K * MANY], parts[M * MANY];
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t group = 0; group < GROUPS; ++group)
            for (ptrdiff_t first = 0; first < OH * OW; first += MANY) {
                const ptrdiff_t count = OH * OW - first < MANY ? OH * OW - first : MANY;
                for (ptrdiff_t i = 0, length; i < count; i += length) {  // windows side by side
                    const ptrdiff_t row = (first + i) / OW, column = (first + i) % OW;
                    length = OW - column < count - i ? OW - column : count - i;
                    const T *x = Input + n * X_N + group * C * X_C;
                    T *to = columns + i;
                    for (ptrdiff_t k = 0; k < K; ++k, to += MANY) {
                        const ptrdiff_t c = k / (KH * KW), kh = k / KW % KH, kw = k % KW;
                        const ptrdiff_t h = row * SH - PH + kh * DH, w = column * SW - PW + kw * DW;
                        const bool in_rows = h >= 0 && h < H, in_columns = w >= 0 && w + (length - 1) * SW < W;
                        const T *from = x + c * X_C + h * X_H + w * X_W;
                        if (in_rows && in_columns)
                            for (ptrdiff_t j = 0; j < length; ++j) to[j] = from[j * SW * X_W];
                        else
                            for (ptrdiff_t j = 0; j < length; ++j)
                                to[j] = in_rows && w + j * SW >= 0 && w + j * SW < W ? from[j * SW * X_W] : 0;
                    }
                }
                product(Filter + group * M * K, columns, parts, M, K, MANY);
                for (ptrdiff_t m = 0; m < M; ++m) {
                    T *y = Output + n * Y_N + (group * M + m) * Y_C;
                    for (ptrdiff_t i = 0; i < count; ++i)
                        y[(first + i) / OW * Y_H + (first + i) % OW * Y_W] = parts[m * MANY + i];
                }
            }
}

// dInput = dOutput · Filter over the windows that an element is in; dFilter = the sum of Input · dOutput over windows.
void conv2d_grad(const T *Input, const T *Filter, const T *Output_GRAD, T *Input_GRAD, T *Filter_GRAD) {
    for (ptrdiff_t i = 0; Input_GRAD && i < N * C * GROUPS * H * W; ++i) Input_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Filter_GRAD && i < F * C * KH * KW; ++i) Filter_GRAD[i] = 0;
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t f = 0; f < F; ++f)
            for (ptrdiff_t oh = 0; oh < OH; ++oh) {
                const T *g = Output_GRAD + n * Y_N + f * Y_C + oh * Y_H;
                for (ptrdiff_t c = 0; c < C; ++c)
                    for (ptrdiff_t kh = 0; kh < KH; ++kh) {
                        const ptrdiff_t h = oh * SH + kh * DH - PH;
                        if (h < 0 || h >= H) continue;
                        const ptrdiff_t from = n * X_N + (f / (F / GROUPS) * C + c) * X_C + h * X_H;
                        for (ptrdiff_t kw = 0; kw < KW; ++kw) {
                            const ptrdiff_t k = ((f * C + c) * KH + kh) * KW + kw, offset = kw * DW - PW;
                            const ptrdiff_t first = first_window(offset, SW), last = last_window(offset, SW, W, OW);
                            const T w = Filter[k];
                            for (ptrdiff_t ow = first; Input_GRAD && ow < last; ++ow)
                                Input_GRAD[from + (ow * SW + offset) * X_W] += w * g[ow * Y_W];
                            T total = 0;
                            for (ptrdiff_t ow = first; Filter_GRAD && ow < last; ++ow)
                                total += Input[from + (ow * SW + offset) * X_W] * g[ow * Y_W];
                            if (Filter_GRAD) Filter_GRAD[k] += total;
                        }
                    }
            }
}

// Each element of Input adds the filter, times itself, to a window of Output.
void conv2d_transpose(const T *Input, const T *Filter, T *Output) {
    for (ptrdiff_t i = 0; i < N * C * GROUPS * H * W; ++i) Output[i] = 0;
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t f = 0; f < F; ++f)
            for (ptrdiff_t oh = 0; oh < OH; ++oh) {
                const T *x = Input + n * Y_N + f * Y_C + oh * Y_H;
                for (ptrdiff_t c = 0; c < C; ++c)
                    for (ptrdiff_t kh = 0; kh < KH; ++kh) {
                        const ptrdiff_t h = oh * SH + kh * DH - PH;
                        if (h < 0 || h >= H) continue;
                        T *y = Output + n * X_N + (f / (F / GROUPS) * C + c) * X_C + h * X_H;
                        for (ptrdiff_t kw = 0; kw < KW; ++kw) {
                            const T w = Filter[((f * C + c) * KH + kh) * KW + kw];
                            const ptrdiff_t offset = kw * DW - PW, last = last_window(offset, SW, W, OW);
                            for (ptrdiff_t ow = first_window(offset, SW); ow < last; ++ow)
                                y[(ow * SW + offset) * X_W] += w * x[ow * Y_W];
                        }
                    }
            }
}

// dInput = the convolution of dOutput with Filter; dFilter = the sum of dOutput · Input over windows.
void conv2d_transpose_grad(const T *Input, const T *Filter, const T *Output_GRAD, T *Input_GRAD, T *Filter_GRAD) {
    for (ptrdiff_t i = 0; Input_GRAD && i < N * F * OH * OW; ++i) Input_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Filter_GRAD && i < F * C * KH * KW; ++i) Filter_GRAD[i] = 0;
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t f = 0; f < F; ++f)
            for (ptrdiff_t oh = 0; oh < OH; ++oh) {
                const ptrdiff_t at = n * Y_N + f * Y_C + oh * Y_H;
                for (ptrdiff_t c = 0; c < C; ++c)
                    for (ptrdiff_t kh = 0; kh < KH; ++kh) {
                        const ptrdiff_t h = oh * SH + kh * DH - PH;
                        if (h < 0 || h >= H) continue;
                        const T *g = Output_GRAD + n * X_N + (f / (F / GROUPS) * C + c) * X_C + h * X_H;
                        for (ptrdiff_t kw = 0; kw < KW; ++kw) {
                            const ptrdiff_t k = ((f * C + c) * KH + kh) * KW + kw, offset = kw * DW - PW;
                            const ptrdiff_t first = first_window(offset, SW), last = last_window(offset, SW, W, OW);
                            const T w = Filter[k];
                            for (ptrdiff_t ow = first; Input_GRAD && ow < last; ++ow)
                                Input_GRAD[at + ow * Y_W] += w * g[(ow * SW + offset) * X_W];
                            T total = 0;
                            for (ptrdiff_t ow = first; Filter_GRAD && ow < last; ++ow)
                                total += Input[at + ow * Y_W] * g[(ow * SW + offset) * X_W];
                            if (Filter_GRAD) Filter_GRAD[k] += total;
                        }
                    }
            }
}
