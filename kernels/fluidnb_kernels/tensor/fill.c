// Tensors filled with numbers.

// Out = VALUE
void fill(const I *ValueTensor, T *Out) {
    (void)ValueTensor;
    for (ptrdiff_t i = 0; i < COUNT; ++i) Out[i] = VALUE;
}
