// Sums of products along named axes.
#include "../element.c"

// Out = the sums of the products of elements over the axes that Out does not have
void einsum(const T *const *Operands, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        double total = 0;
        for (ptrdiff_t s = 0; s < SUMMED; ++s) {
            double product = 1;
            for (ptrdiff_t k = 0; k < OPERANDS; ++k) {
                const ptrdiff_t at = element(i, SIZES, STEPS + k * RANK, RANK);
                product *= (double)Operands[k][at + element(s, SUM_SIZES, SUM_STEPS + k * SUM_RANK, SUM_RANK)];
            }
            total += product;
        }
        Out[i] = (T)total;
    }
}
