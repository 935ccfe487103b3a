// Gated recurrent units along sequences. GATE and CANDIDATE are expressions of x, their slopes of their value y.

// adds x times a matrix with rows to out
static void add_row_product(const T *x, const T *matrix, T *out, ptrdiff_t rows, ptrdiff_t columns) {
    for (ptrdiff_t k = 0; k < rows; ++k)
        for (ptrdiff_t j = 0; j < columns; ++j) out[j] += x[k] * matrix[k * columns + j];
}

// adds x times a transposed matrix to out
static void add_column_product(const T *x, const T *matrix, T *out, ptrdiff_t rows, ptrdiff_t columns) {
    for (ptrdiff_t k = 0; k < rows; ++k)
        for (ptrdiff_t j = 0; j < columns; ++j) out[k] += x[j] * matrix[k * columns + j];
}

// adds the product of a column x and a row y to a matrix
static void add_outer_product(const T *x, const T *y, T *matrix, ptrdiff_t rows, ptrdiff_t columns) {
    for (ptrdiff_t k = 0; k < rows; ++k)
        for (ptrdiff_t j = 0; j < columns; ++j) matrix[k * columns + j] += x[k] * y[j];
}

// the columns of Input are update, reset and candidate; Weight has [WIDTH, 2 · WIDTH] and then [WIDTH, WIDTH]
void gru(const T *Input, const int64_t *Input_LOD, const T *Weight, const T *Bias, const T *H0, T *Hidden) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) Hidden[i] = 0;
    for (ptrdiff_t i = 0; i < SEQUENCES; ++i) {
        const int64_t from = Input_LOD[i], to = Input_LOD[i + 1];
        const T *h = H0 ? H0 + i * WIDTH : NULL;
        for (int64_t step = 0; step < to - from; ++step) {
            const int64_t row = REVERSE ? to - 1 - step : from + step;
            T *hidden = Hidden + row * WIDTH, gates[3 * WIDTH], reset[WIDTH];
            for (ptrdiff_t j = 0; j < 3 * WIDTH; ++j) gates[j] = Input[row * 3 * WIDTH + j] + (Bias ? Bias[j] : 0);
            if (h) add_row_product(h, Weight, gates, WIDTH, 2 * WIDTH);
            for (ptrdiff_t j = 0; j < 2 * WIDTH; ++j) {
                const T x = gates[j];
                gates[j] = GATE;
            }
            for (ptrdiff_t j = 0; j < WIDTH; ++j) reset[j] = h ? h[j] * gates[WIDTH + j] : 0;
            if (h) add_row_product(reset, Weight + 2 * WIDTH * WIDTH, gates + 2 * WIDTH, WIDTH, WIDTH);
            for (ptrdiff_t j = 0; j < WIDTH; ++j) {
                const T x = gates[2 * WIDTH + j], old = h ? h[j] : 0;
                const T candidate = CANDIDATE;
                hidden[j] = ORIGIN ? candidate + gates[j] * (old - candidate) : old + gates[j] * (candidate - old);
            }
            h = hidden;
        }
    }
}

// gradients by backpropagation through time; the gates are computed again
void gru_grad(const T *Input, const int64_t *Input_LOD, const T *Weight, const T *Bias, const T *H0, const T *Hidden,
              const T *Hidden_GRAD, T *Input_GRAD, T *Weight_GRAD, T *Bias_GRAD, T *H0_GRAD) {
    const T *candidates = Weight + 2 * WIDTH * WIDTH;
    for (ptrdiff_t i = 0; Input_GRAD && i < 3 * COUNT; ++i) Input_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Weight_GRAD && i < 3 * WIDTH * WIDTH; ++i) Weight_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Bias_GRAD && i < 3 * WIDTH; ++i) Bias_GRAD[i] = 0;
    for (ptrdiff_t i = 0; i < SEQUENCES; ++i) {
        const int64_t from = Input_LOD[i], to = Input_LOD[i + 1];
        T dh[WIDTH];
        for (ptrdiff_t j = 0; j < WIDTH; ++j) dh[j] = 0;
        for (int64_t step = to - from; step-- > 0;) {
            const int64_t row = REVERSE ? to - 1 - step : from + step, before = REVERSE ? row + 1 : row - 1;
            const T *h = step ? Hidden + before * WIDTH : H0 ? H0 + i * WIDTH : NULL;
            T gates[3 * WIDTH], reset[WIDTH], dreset[WIDTH], d[3 * WIDTH];
            for (ptrdiff_t j = 0; j < 3 * WIDTH; ++j) gates[j] = Input[row * 3 * WIDTH + j] + (Bias ? Bias[j] : 0);
            if (h) add_row_product(h, Weight, gates, WIDTH, 2 * WIDTH);
            for (ptrdiff_t j = 0; j < 2 * WIDTH; ++j) {
                const T x = gates[j];
                gates[j] = GATE;
            }
            for (ptrdiff_t j = 0; j < WIDTH; ++j) reset[j] = h ? h[j] * gates[WIDTH + j] : 0;
            if (h) add_row_product(reset, candidates, gates + 2 * WIDTH, WIDTH, WIDTH);
            for (ptrdiff_t j = 0; j < WIDTH; ++j) {
                const T x = gates[2 * WIDTH + j], old = h ? h[j] : 0, update = gates[j];
                const T candidate = CANDIDATE, g = Hidden_GRAD[row * WIDTH + j] + dh[j];
                T y = candidate;
                d[2 * WIDTH + j] = g * (ORIGIN ? 1 - update : update) * (CANDIDATE_SLOPE);
                y = update;
                d[j] = g * (ORIGIN ? old - candidate : candidate - old) * (GATE_SLOPE);
                dh[j] = g * (ORIGIN ? update : 1 - update);
                dreset[j] = 0;
            }
            add_column_product(d + 2 * WIDTH, candidates, dreset, WIDTH, WIDTH);
            for (ptrdiff_t j = 0; j < WIDTH; ++j) {
                const T y = gates[WIDTH + j];
                d[WIDTH + j] = dreset[j] * (h ? h[j] : 0) * (GATE_SLOPE);
                dh[j] += dreset[j] * y;
            }
            add_column_product(d, Weight, dh, WIDTH, 2 * WIDTH);
            for (ptrdiff_t j = 0; Input_GRAD && j < 3 * WIDTH; ++j) Input_GRAD[row * 3 * WIDTH + j] = d[j];
            for (ptrdiff_t j = 0; Bias_GRAD && j < 3 * WIDTH; ++j) Bias_GRAD[j] += d[j];
            if (Weight_GRAD && h) add_outer_product(h, d, Weight_GRAD, WIDTH, 2 * WIDTH);
            if (Weight_GRAD && h)
                add_outer_product(reset, d + 2 * WIDTH, Weight_GRAD + 2 * WIDTH * WIDTH, WIDTH, WIDTH);
        }
        for (ptrdiff_t j = 0; H0_GRAD && j < WIDTH; ++j) H0_GRAD[i * WIDTH + j] = dh[j];
    }
}
