// Layers of recurrent units over a batch of sequences of TIME steps, one or both ways. The rows of a matrix in WeightList
// are the gates: input, forget, candidate and output of an LSTM; reset, update and candidate of a GRU.

// 1 / (1 + exp(-x))
static T logistic(T x) {
    return (T)1 / ((T)1 + exp(-x));
}

// out = Weight · x + bias
static void gates_of(const T *x, const T *weight, const T *bias, T *out, ptrdiff_t gates, ptrdiff_t features) {
    for (ptrdiff_t g = 0; g < gates; ++g) {
        T total = bias[g];
        for (ptrdiff_t k = 0; k < features; ++k) total += x[k] * weight[g * features + k];
        out[g] = total;
    }
}

// Out = the states of the last layer; State = the last states of all layers and directions
void rnn(const T *Input, const T *const *PreState, const T *const *WeightList, const int32_t *SequenceLength, T *Out,
         T *const *State) {
    enum { COUNT = LAYERS * SIDES, SIZE = BATCH * WIDTH, ALL = GATES * WIDTH, LEVEL = TIME * BATCH * SIDES * WIDTH };
    static T levels[2][LEVEL];
    const T *x = Input;
    for (ptrdiff_t layer = 0, features = FEATURES; layer < LAYERS; ++layer, features = SIDES * WIDTH) {
        T *out = layer == LAYERS - 1 ? Out : levels[layer % 2];
        for (ptrdiff_t side = 0; side < SIDES; ++side) {
            const ptrdiff_t at = layer * SIDES + side;
            for (ptrdiff_t n = 0; n < BATCH; ++n) {
                const ptrdiff_t steps = SequenceLength ? SequenceLength[n] : TIME;
                T h[WIDTH], c[WIDTH], a[ALL], r[ALL];
                for (ptrdiff_t j = 0; j < WIDTH; ++j) {
                    h[j] = PreState[0][at * SIZE + n * WIDTH + j];
                    c[j] = IS_LSTM ? PreState[STATES - 1][at * SIZE + n * WIDTH + j] : 0;
                }
                for (ptrdiff_t step = 0; step < TIME; ++step) {
                    const ptrdiff_t t = side ? TIME - 1 - step : step;
                    T *y = out + ((t * BATCH + n) * SIDES + side) * WIDTH;
                    for (ptrdiff_t j = 0; j < WIDTH; ++j) y[j] = 0;
                    if (t >= steps) continue;
                    gates_of(x + (t * BATCH + n) * features, WeightList[2 * at], WeightList[2 * (COUNT + at)], a, ALL,
                             features);
                    gates_of(h, WeightList[2 * at + 1], WeightList[2 * (COUNT + at) + 1], r, ALL, WIDTH);
                    for (ptrdiff_t j = 0; j < WIDTH; ++j) {
                        if (IS_LSTM) {
                            const T input = logistic(a[j] + r[j]), forget = logistic(a[WIDTH + j] + r[WIDTH + j]);
                            const T candidate = tanh(a[2 * WIDTH + j] + r[2 * WIDTH + j]);
                            c[j] = forget * c[j] + input * candidate;
                            h[j] = logistic(a[3 * WIDTH + j] + r[3 * WIDTH + j]) * tanh(c[j]);
                        } else if (IS_GRU) {
                            const T reset = logistic(a[j] + r[j]), keep = logistic(a[WIDTH + j] + r[WIDTH + j]);
                            const T candidate = tanh(a[2 * WIDTH + j] + reset * r[2 * WIDTH + j]);
                            h[j] = (h[j] - candidate) * keep + candidate;
                        } else {
                            const T sum = a[j] + r[j];
                            h[j] = IS_RELU ? (sum > (T)0 ? sum : (T)0) : tanh(sum);
                        }
                        y[j] = h[j];
                    }
                }
                for (ptrdiff_t j = 0; j < WIDTH; ++j) {
                    if (State && State[0]) State[0][at * SIZE + n * WIDTH + j] = h[j];
                    if (IS_LSTM && State && State[STATES - 1]) State[STATES - 1][at * SIZE + n * WIDTH + j] = c[j];
                }
            }
        }
        x = out;
    }
}
