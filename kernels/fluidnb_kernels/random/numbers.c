// Tensors of random numbers: with a seed those of the executor, the same in every run; else others in every run.
#include "philox.c"

// Out = numbers from [LOW, LOW + SPAN); DIAGONAL elements, each STEP columns further than its row, are VALUE
void uniform_random(T *Out) {
    static uint64_t runs = 0;
    uint64_t words[4] = {0};
    const uint64_t run = SEEDED ? 0 : runs++;
    for (ptrdiff_t i = 0; i < COUNT; ++i) Out[i] = random_unit(words, i, run, KEY0, KEY1) * SPAN + LOW;
    for (ptrdiff_t i = 0; i < DIAGONAL; ++i) Out[i * WIDTH + i * STEP] = VALUE;
}

// Out = normal numbers, by Box and Muller's method
void gaussian_random(T *Out) {
    static uint64_t runs = 0;
    const uint64_t run = SEEDED ? 0 : runs++;
    const ptrdiff_t half = (COUNT + 1) / 2;
    for (ptrdiff_t i = 0; i < half; ++i) {
        const double u = random_double((uint64_t)i, run, KEY0, KEY1);
        const double angle = 6.283185307179586 * random_double((uint64_t)(half + i), run, KEY0, KEY1);
        const double radius = sqrt(-2.0 * log1p(-u));
        Out[i] = (T)((double)CENTRE + (double)SPREAD * (radius * cos(angle)));
        if (half + i < COUNT) Out[half + i] = (T)((double)CENTRE + (double)SPREAD * (radius * sin(angle)));
    }
}
