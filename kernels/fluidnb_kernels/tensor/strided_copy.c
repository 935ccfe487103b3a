// Copies of parts of tensors, whose elements are any distance apart; dimensions that are contiguous count as one.
#include "../element.c"

// Copies COUNT elements of SIZES; the last dimension is a line.
static void copy_part(const T *from, T *to, ptrdiff_t count, const ptrdiff_t *sizes, const ptrdiff_t *from_steps,
                      const ptrdiff_t *to_steps, int rank) {
    const ptrdiff_t line = sizes[rank - 1], from_step = from_steps[rank - 1], to_step = to_steps[rank - 1];
    for (ptrdiff_t k = 0; k * line < count; ++k) {
        const T *x = from + element(k, sizes, from_steps, rank - 1);
        T *y = to + element(k, sizes, to_steps, rank - 1);
        if (from_step == 1 && to_step == 1)
            memcpy(y, x, (size_t)line * sizeof(T));
        else
            for (ptrdiff_t i = 0; i < line; ++i) y[i * to_step] = x[i * from_step];
    }
}

// Adds elements as copy_part copies them.
static void add_part(const T *from, T *to, ptrdiff_t count, const ptrdiff_t *sizes, const ptrdiff_t *from_steps,
                     const ptrdiff_t *to_steps, int rank) {
    const ptrdiff_t line = sizes[rank - 1], from_step = from_steps[rank - 1], to_step = to_steps[rank - 1];
    for (ptrdiff_t k = 0; k * line < count; ++k) {
        const T *x = from + element(k, sizes, from_steps, rank - 1);
        T *y = to + element(k, sizes, to_steps, rank - 1);
        for (ptrdiff_t i = 0; i < line; ++i) y[i * to_step] += x[i * from_step];
    }
}

// Out = X with its elements in another order
void rearranged(const T *X, T *Out) {
    copy_part(X + FROM, Out + TO, COUNT, SIZES, FROM_STEPS, TO_STEPS, RANK);
}

// dX = dOut in the order of X
void rearranged_grad(const T *Out_GRAD, T *X_GRAD) {
    copy_part(Out_GRAD + FROM, X_GRAD + TO, COUNT, SIZES, FROM_STEPS, TO_STEPS, RANK);
}

// dX = the sum of dOut over all repetitions
void repeated_grad(const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < WHOLE; ++i) X_GRAD[i] = 0;
    add_part(Out_GRAD + FROM, X_GRAD + TO, COUNT, SIZES, FROM_STEPS, TO_STEPS, RANK);
}

// Out = a part of Input
void part(const T *Input, T *Out) {
    copy_part(Input + FROM, Out + TO, COUNT, SIZES, FROM_STEPS, TO_STEPS, RANK);
}

// dInput = dOut where it was taken from, 0 elsewhere
void part_grad(const T *Out_GRAD, T *Input_GRAD) {
    for (ptrdiff_t i = 0; i < WHOLE; ++i) Input_GRAD[i] = 0;
    copy_part(Out_GRAD + FROM, Input_GRAD + TO, COUNT, SIZES, FROM_STEPS, TO_STEPS, RANK);
}

// Out = X with a border of VALUE
void bordered(const T *X, T *Out) {
    for (ptrdiff_t i = 0; i < WHOLE; ++i) Out[i] = VALUE;
    copy_part(X + FROM, Out + TO, COUNT, SIZES, FROM_STEPS, TO_STEPS, RANK);
}
