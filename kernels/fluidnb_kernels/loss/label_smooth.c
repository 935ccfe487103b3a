// Labels mixed with a distribution over CLASSES.

// Out = (1 - EPSILON) · X + EPSILON · PriorDist, or SAME without one
void label_smooth(const T *X, const T *PriorDist, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i)
        Out[i] = X[i] * ((T)1 - EPSILON) + (PriorDist ? PriorDist[i % CLASSES] * EPSILON : SAME);
}
