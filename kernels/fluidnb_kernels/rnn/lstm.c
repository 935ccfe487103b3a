// Long short-term memory along sequences. GATE, CELL and CANDIDATE are expressions of x, their slopes of their value y.

// one row of gates before their activations = the projected input + Bias + the hidden state, if any, times Weight
static void row_of_gates(const T *input, const T *bias, const T *h, const T *weight, T *gates, ptrdiff_t width) {
    for (ptrdiff_t j = 0; j < 4 * width; ++j) gates[j] = input[j] + bias[j];
    for (ptrdiff_t k = 0; h && k < width; ++k)
        for (ptrdiff_t j = 0; j < 4 * width; ++j) gates[j] += h[k] * weight[k * 4 * width + j];
}

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
            row_of_gates(Input + row * 4 * WIDTH, Bias, h, Weight, gates, WIDTH);
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

// gradients by backpropagation through time, from that of Hidden; the gates are computed again
void lstm_grad(const T *Input, const int64_t *Input_LOD, const T *Weight, const T *Bias, const T *H0, const T *C0,
               const T *Hidden, const T *Cell, const T *Hidden_GRAD, T *Input_GRAD, T *Weight_GRAD, T *Bias_GRAD,
               T *H0_GRAD, T *C0_GRAD) {
    for (ptrdiff_t i = 0; Input_GRAD && i < 4 * COUNT; ++i) Input_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Weight_GRAD && i < 4 * WIDTH * WIDTH; ++i) Weight_GRAD[i] = 0;
    for (ptrdiff_t i = 0; Bias_GRAD && i < (PEEPHOLES ? 7 : 4) * WIDTH; ++i) Bias_GRAD[i] = 0;
    for (ptrdiff_t i = 0; i < SEQUENCES; ++i) {
        const int64_t from = Input_LOD[i], to = Input_LOD[i + 1];
        T dh[WIDTH], dc[WIDTH];
        for (ptrdiff_t j = 0; j < WIDTH; ++j) dh[j] = dc[j] = 0;
        for (int64_t step = to - from; step-- > 0;) {
            const int64_t row = REVERSE ? to - 1 - step : from + step, before = REVERSE ? row + 1 : row - 1;
            const T *h = step ? Hidden + before * WIDTH : H0 ? H0 + i * WIDTH : NULL;
            const T *c = step ? Cell + before * WIDTH : C0 ? C0 + i * WIDTH : NULL;
            T gates[4 * WIDTH];
            row_of_gates(Input + row * 4 * WIDTH, Bias, h, Weight, gates, WIDTH);
            for (ptrdiff_t j = 0; j < WIDTH; ++j) {
                const T old = c ? c[j] : 0, cell = Cell[row * WIDTH + j], g = Hidden_GRAD[row * WIDTH + j] + dh[j];
                T x = gates[j];
                const T candidate = CANDIDATE;
                x = gates[WIDTH + j] + (PEEPHOLES ? Bias[4 * WIDTH + j] * old : 0);
                const T input = GATE;
                x = gates[2 * WIDTH + j] + (PEEPHOLES ? Bias[5 * WIDTH + j] * old : 0);
                const T forget = GATE;
                x = gates[3 * WIDTH + j] + (PEEPHOLES ? Bias[6 * WIDTH + j] * cell : 0);
                const T output = GATE;
                x = cell;
                const T active = CELL;
                T y = output;
                const T doutput = g * active * (GATE_SLOPE);
                y = active;
                const T dcell = dc[j] + g * output * (CELL_SLOPE) + (PEEPHOLES ? doutput * Bias[6 * WIDTH + j] : 0);
                y = candidate;
                gates[j] = dcell * input * (CANDIDATE_SLOPE);
                y = input;
                const T dinput = dcell * candidate * (GATE_SLOPE);
                y = forget;
                const T dforget = dcell * old * (GATE_SLOPE);
                gates[WIDTH + j] = dinput, gates[2 * WIDTH + j] = dforget, gates[3 * WIDTH + j] = doutput;
                dc[j] = dcell * forget;
                if (PEEPHOLES) dc[j] += dinput * Bias[4 * WIDTH + j] + dforget * Bias[5 * WIDTH + j];
                if (PEEPHOLES && Bias_GRAD) {
                    Bias_GRAD[4 * WIDTH + j] += dinput * old;
                    Bias_GRAD[5 * WIDTH + j] += dforget * old;
                    Bias_GRAD[6 * WIDTH + j] += doutput * cell;
                }
            }
            for (ptrdiff_t j = 0; Input_GRAD && j < 4 * WIDTH; ++j) Input_GRAD[row * 4 * WIDTH + j] = gates[j];
            for (ptrdiff_t j = 0; Bias_GRAD && j < 4 * WIDTH; ++j) Bias_GRAD[j] += gates[j];
            for (ptrdiff_t k = 0; k < WIDTH; ++k) {
                T total = 0;
                for (ptrdiff_t j = 0; j < 4 * WIDTH; ++j) total += gates[j] * Weight[k * 4 * WIDTH + j];
                dh[k] = total;
                for (ptrdiff_t j = 0; Weight_GRAD && h && j < 4 * WIDTH; ++j)
                    Weight_GRAD[k * 4 * WIDTH + j] += h[k] * gates[j];
            }
        }
        for (ptrdiff_t j = 0; H0_GRAD && j < WIDTH; ++j) H0_GRAD[i * WIDTH + j] = dh[j];
        for (ptrdiff_t j = 0; C0_GRAD && j < WIDTH; ++j) C0_GRAD[i * WIDTH + j] = dc[j];
    }
}
