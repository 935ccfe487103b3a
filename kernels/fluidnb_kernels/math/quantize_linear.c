// Numbers to whole ones of a few bits by a scale, and back. Element i has scale i / INNER % CHANNELS.

// Y = round(X / Scale · LARGEST), limited to the whole numbers that there are
void quantize_linear(const T *X, const T *Scale, T *Y) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T scale = Scale[i / INNER % CHANNELS];
        const T x = X[i] / (scale > (T)TINY ? scale : (T)TINY) * (T)LARGEST;
        const T whole = AWAY ? copysign(floor(fabs(x) + (T)0.5), x) : rint(x), least = (T)(AWAY ? -LARGEST : -LARGEST - 1);
        Y[i] = ONLY_OBSERVED ? X[i] : whole > (T)LARGEST ? (T)LARGEST : whole < least ? least : whole;
    }
}

// Y = X · Scale / LARGEST
void dequantize_linear(const T *X, const T *Scale, T *Y) {
    for (ptrdiff_t i = 0; i < COUNT; ++i)
        Y[i] = ONLY_OBSERVED ? X[i] : X[i] * Scale[i / INNER % CHANNELS] / (T)LARGEST;
}
