// Arithmetic of two tensors, of which one may be repeated along some dimensions.

// the element of a tensor that belongs to element i of the result
static ptrdiff_t element(ptrdiff_t i, const ptrdiff_t *sizes, const ptrdiff_t *steps, int rank) {
    ptrdiff_t at = 0;
    for (int d = rank - 1; d >= 0; --d) {
        at += i % sizes[d] * steps[d];
        i /= sizes[d];
    }
    return at;
}

// x / y
static T quotient(T x, T y) {
    return x / y;
}

// x to the power of y
static T power(T x, T y) {
    return pow(x, y);
}

// x / y rounded down
static T rounded_down(T x, T y) {
    return floor(x / y);
}

// what is left of x / y rounded down
static T remainder_of(T x, T y) {
    const T left = fmod(x, y);
    return left != (T)0 && (left < (T)0) != (y < (T)0) ? left + y : left;
}

// Out = VALUE
void joined(const T *X, const T *Y, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = X[element(i, SIZES, X_STEPS, RANK)], y = Y[element(i, SIZES, Y_STEPS, RANK)];
        Out[i] = VALUE;
    }
}

// dX = DX and dY = DY, added up where an operand was repeated.
void slopes(const T *X, const T *Y, const T *Out_GRAD, T *X_GRAD, T *Y_GRAD) {
    for (ptrdiff_t i = 0; X_GRAD && i < X_COUNT; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Y_GRAD && i < Y_COUNT; ++i) Y_GRAD[i] = 0;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const ptrdiff_t at_x = element(i, SIZES, X_STEPS, RANK), at_y = element(i, SIZES, Y_STEPS, RANK);
        const T x = X[at_x], y = Y[at_y], g = Out_GRAD[i];
        (void)x, (void)y;
        if (X_GRAD) X_GRAD[at_x] += DX;
        if (Y_GRAD) Y_GRAD[at_y] += DY;
    }
}

// The same, where the slopes need Out.
void slopes_with_out(const T *X, const T *Y, const T *Out, const T *Out_GRAD, T *X_GRAD, T *Y_GRAD) {
    for (ptrdiff_t i = 0; X_GRAD && i < X_COUNT; ++i) X_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Y_GRAD && i < Y_COUNT; ++i) Y_GRAD[i] = 0;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const ptrdiff_t at_x = element(i, SIZES, X_STEPS, RANK), at_y = element(i, SIZES, Y_STEPS, RANK);
        const T x = X[at_x], y = Y[at_y], out = Out[i], g = Out_GRAD[i];
        (void)x, (void)y, (void)out;
        if (X_GRAD) X_GRAD[at_x] += DX;
        if (Y_GRAD) Y_GRAD[at_y] += DY;
    }
}
