// One of several tensors of a size.

// Out = X[Mask]; nothing where there is none of that number
void select_input(const T *const *X, const int32_t *Mask, T *Out) {
    for (ptrdiff_t i = 0; *Mask >= 0 && *Mask < WAYS && i < COUNT; ++i) Out[i] = X[*Mask][i];
}
