// Rows of a table by their numbers.

// Out[i] = W[Ids[i]], 0 where Ids[i] is PADDING, not a number where it is no row
void lookup(const T *W, const I *Ids, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const ptrdiff_t id = (ptrdiff_t)Ids[i];
        for (ptrdiff_t j = 0; j < WIDTH; ++j)
            Out[i * WIDTH + j] = id == PADDING ? (T)0 : id >= 0 && id < HEIGHT ? W[id * WIDTH + j] : (T)NAN;
    }
}

// dW = the sum of dOut for each row of W
void lookup_grad(const I *Ids, const T *Out_GRAD, T *W_GRAD) {
    for (ptrdiff_t i = 0; i < HEIGHT * WIDTH; ++i) W_GRAD[i] = 0;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const ptrdiff_t id = (ptrdiff_t)Ids[i];
        if (id == PADDING || id < 0 || id >= HEIGHT) continue;
        for (ptrdiff_t j = 0; j < WIDTH; ++j) W_GRAD[id * WIDTH + j] += Out_GRAD[i * WIDTH + j];
    }
}
