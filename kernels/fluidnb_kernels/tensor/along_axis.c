// Elements along one axis by their numbers, of which there are COUNT in SIZES; negative ones count from the end.
#include "../element.c"
#include "gather_scatter.c"

// Result = the elements of Input that Index names; 0 where there is none
void take_along_axis(const T *Input, const I *Index, T *Result) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const ptrdiff_t row = row_of((ptrdiff_t)Index[i], HEIGHT);
        Result[i] = row < 0 ? (T)0 : Input[element(i, SIZES, STEPS, RANK) + row * STEP];
    }
}

// dInput = 0, with each element of dResult added where it came from
void take_along_axis_grad(const I *Index, const T *Result_GRAD, T *Input_GRAD) {
    for (ptrdiff_t i = 0; i < WHOLE; ++i) Input_GRAD[i] = 0;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const ptrdiff_t row = row_of((ptrdiff_t)Index[i], HEIGHT);
        if (row >= 0) Input_GRAD[element(i, SIZES, STEPS, RANK) + row * STEP] += Result_GRAD[i];
    }
}

// Result = Input with values where Index names elements; JOIN of a value and the element that is there
void put_along_axis(const T *Input, const I *Index, const T *Value, T *Result) {
    for (ptrdiff_t i = 0; i < WHOLE; ++i) Result[i] = Input[i];
    for (int pass = INCLUDED ? 1 : 0; pass < 2; ++pass)
        for (ptrdiff_t i = 0; i < COUNT; ++i) {
            const ptrdiff_t row = row_of((ptrdiff_t)Index[i], HEIGHT);
            if (row < 0) continue;
            T *at = Result + element(i, SIZES, STEPS, RANK) + row * STEP;
            const T there = *at, value = Value[element(i, SIZES, VALUE_STEPS, RANK)];
            (void)there;
            *at = pass == 0 ? (T)(FIRST) : (T)(JOIN);
        }
}
