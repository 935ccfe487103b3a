// Comparisons and logic of two tensors, of which one may be repeated along some dimensions, in lines of LINE elements.
#include "../element.c"

// Out = VALUE
void compared(const T *X, const T *Y, bool *Out) {
    for (ptrdiff_t line = 0; line < LINES; ++line) {
        const T *xs = X + X_LINE, *ys = Y + Y_LINE;
        bool *out = Out + line * LINE;
        for (ptrdiff_t i = 0; i < LINE; ++i) {
            const T x = xs[i * X_STEP], y = ys[i * Y_STEP];
            out[i] = VALUE;
        }
    }
}

// Out = not X
void logical_not(const T *X, bool *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) Out[i] = !X[i];
}
