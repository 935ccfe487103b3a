// Tensors with other values in a part of them.
#include "strided_copy.c"

// Out = Input with a value in a part of it
void set_value(const T *Input, const T *ValueTensor, T *Out) {
    (void)ValueTensor;
    for (ptrdiff_t i = 0; i < WHOLE; ++i) Out[i] = Input[i];
    const T *value = VALUE;
    copy_part(value + FROM, Out + TO, COUNT, SIZES, FROM_STEPS, TO_STEPS, RANK);
}
