// Properties of tensors, which are known when the code is written.

// Out = NUMBERS
void property(T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) Out[i] = (T)NUMBERS[i];
}
