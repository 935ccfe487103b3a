// One step of an LSTM: X has input gate, forget gate, output gate and candidate, of WIDTH columns each.

// a gate: 1 / (1 + exp(-x))
static T gate_of(T x) {
    return (T)1 / ((T)1 + exp(-x));
}

// C = σ(f + BIAS) · C_prev + σ(i) · tanh(g); H = σ(o) · tanh(C)
void lstm_unit(const T *X, const T *C_prev, T *C, T *H) {
    for (ptrdiff_t row = 0; row < ROWS; ++row)
        for (ptrdiff_t j = 0; j < WIDTH; ++j) {
            const T *x = X + row * 4 * WIDTH + j;
            const T cell = gate_of(x[WIDTH] + BIAS) * C_prev[row * WIDTH + j] + gate_of(x[0]) * tanh(x[3 * WIDTH]);
            if (C) C[row * WIDTH + j] = cell;
            if (H) H[row * WIDTH + j] = gate_of(x[2 * WIDTH]) * tanh(cell);
        }
}

// dC is that of C and of H together; each gate gets its share times the slope of its activation
void lstm_unit_grad(const T *X, const T *C_prev, const T *C, const T *C_GRAD, const T *H_GRAD, T *X_GRAD,
                    T *C_prev_GRAD) {
    for (ptrdiff_t row = 0; row < ROWS; ++row)
        for (ptrdiff_t j = 0; j < WIDTH; ++j) {
            const ptrdiff_t at = row * WIDTH + j;
            const T *x = X + row * 4 * WIDTH + j;
            const T i = gate_of(x[0]), f = gate_of(x[WIDTH] + BIAS), o = gate_of(x[2 * WIDTH]), g = tanh(x[3 * WIDTH]);
            const T seen = tanh(C[at]), dh = H_GRAD ? H_GRAD[at] : (T)0;
            const T dc = ((T)1 - seen * seen) * dh * o + (C_GRAD ? C_GRAD[at] : (T)0);
            if (C_prev_GRAD) C_prev_GRAD[at] = dc * f;
            if (!X_GRAD) continue;
            T *dx = X_GRAD + row * 4 * WIDTH + j;
            dx[0] = i * ((T)1 - i) * g * dc;
            dx[WIDTH] = f * ((T)1 - f) * C_prev[at] * dc;
            dx[2 * WIDTH] = o * ((T)1 - o) * seen * dh;
            dx[3 * WIDTH] = ((T)1 - g * g) * i * dc;
        }
}
