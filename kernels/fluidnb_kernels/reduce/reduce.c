// Reductions over dimensions: lines of LINE elements of X, each for one element of Out where OUT_STEP is 0, else for as
// many.
#include "../element.c"

// Out = JOIN of all elements a and b
void reduced(const I *X, T *Out) {
    for (ptrdiff_t i = 0; i < OUT_COUNT; ++i) Out[i] = START;
    for (ptrdiff_t line = 0; line < LINES; ++line) {
        const I *x = X + line * LINE;
        T *out = Out + OUT_LINE;
        if (OUT_STEP == 0) {
            WIDE a = out[0];
            for (ptrdiff_t i = 0; i < LINE; ++i) {
                const T b = (T)x[i];
                a = (WIDE)(JOIN);
            }
            out[0] = (T)a;
        } else {
            for (ptrdiff_t i = 0; i < LINE; ++i) {
                const T a = out[i], b = (T)x[i];
                out[i] = (T)(JOIN);
            }
        }
    }
    if (PARTS > 1)
        for (ptrdiff_t i = 0; i < OUT_COUNT; ++i) Out[i] = (T)(Out[i] / (T)PARTS);
}

// dX = VALUE
void reduced_grad(const T *X, const T *Out, const T *Out_GRAD, T *X_GRAD) {
    (void)X, (void)Out;
    for (ptrdiff_t line = 0; line < LINES; ++line) {
        const ptrdiff_t from = OUT_LINE;
        for (ptrdiff_t i = 0; i < LINE; ++i) {
            const ptrdiff_t of = from + i * OUT_STEP, at = line * LINE + i;
            X_GRAD[at] = VALUE;
        }
    }
}
