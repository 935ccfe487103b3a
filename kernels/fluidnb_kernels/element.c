// Elements of tensors whose dimensions have any distance.

// the place of element i of a tensor, in row-major order
static ptrdiff_t element(ptrdiff_t i, const ptrdiff_t *sizes, const ptrdiff_t *steps, int rank) {
    ptrdiff_t at = 0;
    for (int d = rank - 1; d >= 0; --d) {
        at += i % sizes[d] * steps[d];
        i /= sizes[d];
    }
    return at;
}
