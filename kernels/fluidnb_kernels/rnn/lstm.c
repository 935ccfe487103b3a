// Long short-term memory along sequences. GATE, CELL and CANDIDATE are expressions of x.

// the columns of Input are candidate, input, forget and output; the weights of peepholes follow the bias
void lstm(const T *Input, const int64_t *Input_LOD, const T *Weight, const T *Bias, const T *H0, const T *C0, T *Hidden,
          T *Cell) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) Hidden[i] = Cell[i] = 0;
    for (ptrdiff_t i = 0; i < SEQUENCES; ++i) {
        const int64_t from = Input_LOD[i], to = Input_LOD[i + 1];
        const T *h = H0 ? H0 + i * WIDTH : NULL, *c = C0 ? C0 + i * WIDTH : NULL;
        for (int64_t step = 0; step < to - from; ++step) {
            const int64_t row = REVERSE ? to - 1 - step : from + step;
            T *hidden = Hidden + row * WIDTH, *cell = Cell + row * WIDTH, gates[4 * WIDTH];
            for (ptrdiff_t j = 0; j < 4 * WIDTH; ++j) gates[j] = Input[row * 4 * WIDTH + j] + Bias[j];
            for (ptrdiff_t k = 0; h && k < WIDTH; ++k)
                for (ptrdiff_t j = 0; j < 4 * WIDTH; ++j) gates[j] += h[k] * Weight[k * 4 * WIDTH + j];
            for (ptrdiff_t j = 0; j < WIDTH; ++j) {
                const T before = c ? c[j] : 0;
                T x = gates[j];
                const T candidate = CANDIDATE;
                x = gates[WIDTH + j] + (PEEPHOLES ? Bias[4 * WIDTH + j] * before : 0);
                const T input = GATE;
                x = gates[2 * WIDTH + j] + (PEEPHOLES ? Bias[5 * WIDTH + j] * before : 0);
                const T forget = GATE;
                cell[j] = forget * before + input * candidate;
                x = gates[3 * WIDTH + j] + (PEEPHOLES ? Bias[6 * WIDTH + j] * cell[j] : 0);
                const T output = GATE;
                x = cell[j];
                hidden[j] = output * (CELL);
            }
            h = hidden;
            c = cell;
        }
    }
}
