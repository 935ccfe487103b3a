// Gated recurrent units along sequences. GATE and CANDIDATE are expressions of x.

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
            for (ptrdiff_t k = 0; h && k < WIDTH; ++k)
                for (ptrdiff_t j = 0; j < 2 * WIDTH; ++j) gates[j] += h[k] * Weight[k * 2 * WIDTH + j];
            for (ptrdiff_t j = 0; j < 2 * WIDTH; ++j) {
                const T x = gates[j];
                gates[j] = GATE;
            }
            for (ptrdiff_t j = 0; j < WIDTH; ++j) reset[j] = h ? h[j] * gates[WIDTH + j] : 0;
            for (ptrdiff_t k = 0; h && k < WIDTH; ++k)
                for (ptrdiff_t j = 0; j < WIDTH; ++j)
                    gates[2 * WIDTH + j] += reset[k] * Weight[2 * WIDTH * WIDTH + k * WIDTH + j];
            for (ptrdiff_t j = 0; j < WIDTH; ++j) {
                const T x = gates[2 * WIDTH + j], old = h ? h[j] : 0;
                const T candidate = CANDIDATE;
                hidden[j] = ORIGIN ? candidate + gates[j] * (old - candidate) : old + gates[j] * (candidate - old);
            }
            h = hidden;
        }
    }
}
