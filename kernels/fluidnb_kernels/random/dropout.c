// Dropout and its gradient. Training with a seed draws what the executor draws, the same in every run; without one other
// numbers in every run.
#include "philox.c"

// Out = X · STAYS in a test; in training X / DIVISOR where a random number is not below RATE, 0 elsewhere
void dropout(const T *X, T *Out, uint8_t *Mask) {
    static uint64_t runs = 0;
    uint64_t words[4] = {0};
    const uint64_t run = SEEDED ? 0 : runs++;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const bool stays = TEST || random_unit(words, i, run, KEY0, KEY1) >= RATE;
        Out[i] = TEST ? X[i] * STAYS : stays ? X[i] / DIVISOR : (T)0;
        if (Mask) Mask[i] = stays;
    }
}

// dX = dOut times what the element of X was multiplied with
void dropout_grad(const uint8_t *Mask, const T *Out_GRAD, T *X_GRAD) {
    (void)Mask;
    for (ptrdiff_t i = 0; i < COUNT; ++i) X_GRAD[i] = VALUE;
}
