// Arithmetic of two tensors, of which one may be repeated along some dimensions. Loops run along the last dimension, in
// lines of LINE elements; X_STEP and Y_STEP are 0 where an operand is repeated along it.
#include "../element.c"

// x / y
static T quotient(T x, T y) {
    return x / y;
}

// x / y of whole numbers, 0 where y is 0
static T whole_quotient(T x, T y) {
    return (T)(y == 0 ? 0 : x / y);
}

// x to the power of y
static T power(T x, T y) {
    return pow(x, y);
}

// x to the power of y, of whole numbers
static T whole_power(T x, T y) {
    T out = 1;
    for (T k = 0; k < y; ++k) out = (T)(out * x);
    return out;
}

// x / y rounded down
static T rounded_down(T x, T y) {
    return floor(x / y);
}

// x / y of whole numbers, rounded down; 0 where y is 0
static T whole_rounded_down(T x, T y) {
    if (y == 0) return 0;
    return (T)(x / y - (x % y != 0 && (x < 0) != (y < 0)));
}

// what is left of x / y rounded down
static T remainder_of(T x, T y) {
    const T left = fmod(x, y);
    return left != (T)0 && (left < (T)0) != (y < (T)0) ? left + y : left;
}

// what is left of x / y of whole numbers, rounded down; 0 where y is 0
static T whole_remainder(T x, T y) {
    return (T)(y == 0 ? 0 : x - y * whole_rounded_down(x, y));
}

// Out = VALUE
void joined(const T *X, const T *Y, T *Out) {
    for (ptrdiff_t line = 0; line < LINES; ++line) {
        const T *xs = X + X_LINE, *ys = Y + Y_LINE;
        T *out = Out + line * LINE;
        for (ptrdiff_t i = 0; i < LINE; ++i) {
            const T x = xs[i * X_STEP], y = ys[i * Y_STEP];
            out[i] = (T)(VALUE);
        }
    }
}

// dX = DX and dY = DY, added up where an operand was repeated.
void slopes(const T *X, const T *Y, const T *Out_GRAD, T *X_GRAD, T *Y_GRAD) {
    for (ptrdiff_t i = 0; X_GRAD && i < X_COUNT; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Y_GRAD && i < Y_COUNT; ++i) Y_GRAD[i] = 0;
    for (ptrdiff_t line = 0; line < LINES; ++line) {
        const ptrdiff_t at_x = X_LINE, at_y = Y_LINE, at = line * LINE;
        for (ptrdiff_t i = 0; X_GRAD && i < LINE; ++i) {
            const T x = X[at_x + i * X_STEP], y = Y[at_y + i * Y_STEP], g = Out_GRAD[at + i];
            (void)x, (void)y;
            X_GRAD[at_x + i * X_STEP] += DX;
        }
        for (ptrdiff_t i = 0; Y_GRAD && i < LINE; ++i) {
            const T x = X[at_x + i * X_STEP], y = Y[at_y + i * Y_STEP], g = Out_GRAD[at + i];
            (void)x, (void)y;
            Y_GRAD[at_y + i * Y_STEP] += DY;
        }
    }
}

// The same, where the slopes need Out.
void slopes_with_out(const T *X, const T *Y, const T *Out, const T *Out_GRAD, T *X_GRAD, T *Y_GRAD) {
    for (ptrdiff_t i = 0; X_GRAD && i < X_COUNT; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Y_GRAD && i < Y_COUNT; ++i) Y_GRAD[i] = 0;
    for (ptrdiff_t line = 0; line < LINES; ++line) {
        const ptrdiff_t at_x = X_LINE, at_y = Y_LINE, at = line * LINE;
        for (ptrdiff_t i = 0; i < LINE; ++i) {
            const T x = X[at_x + i * X_STEP], y = Y[at_y + i * Y_STEP], out = Out[at + i], g = Out_GRAD[at + i];
            (void)x, (void)y, (void)out;
            if (X_GRAD) X_GRAD[at_x + i * X_STEP] += DX;
            if (Y_GRAD) Y_GRAD[at_y + i * Y_STEP] += DY;
        }
    }
}
