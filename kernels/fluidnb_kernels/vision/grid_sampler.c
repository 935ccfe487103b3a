// Images sampled at the points of a grid, which are from -1 to 1 across the image.

// the point of element i of an axis
static double point(ptrdiff_t i, ptrdiff_t size, bool corners) {
    const double at = size > 1 ? 2 * (double)i / (double)(size - 1) - 1 : -1;
    return corners ? at : at * (double)(size - 1) / (double)size;
}

// Output = Theta · (x, y, 1) for each element of an image, or Theta · (x, y, z, 1) of a volume
void affine_grid(const T *Theta, T *Output) {
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t k = 0; k < D; ++k)
            for (ptrdiff_t i = 0; i < H; ++i)
                for (ptrdiff_t j = 0; j < W; ++j) {
                    const T at[] = {(T)point(j, W, CORNERS), (T)point(i, H, CORNERS), (T)point(k, D, CORNERS)};
                    for (ptrdiff_t r = 0; r < RANK; ++r) {
                        const T *row = Theta + (n * RANK + r) * (RANK + 1);
                        T total = row[RANK];
                        for (ptrdiff_t a = 0; a < RANK; ++a) total += row[a] * at[a];
                        *Output++ = total;
                    }
                }
}

// a point as a position along an axis; padding is 0 for zeros, 1 for the border, 2 for the reflection
static T position(T at, ptrdiff_t size, bool corners, int padding) {
    const T last = (T)(size - 1);
    T p = corners ? (at + 1) * (last / 2) : ((at + 1) * (T)size - 1) / 2;
    if (padding == 2) {
        const T edge = corners ? (T)0 : (T)0.5, period = 2 * (corners ? last : (T)size);
        const T far = fabs(p + edge), turned = far - floor(far / (period > 1 ? period : (T)1)) * period;
        p = (turned < period - turned ? turned : period - turned) - edge;
    }
    if (padding && p < 0) p = 0;
    return padding && p > last ? last : p;
}

// Output = X at each point: its four neighbours by how near they are, or the nearest
void grid_sampler(const T *X, const T *Grid, T *Output) {
    for (ptrdiff_t n = 0; n < N; ++n)
        for (ptrdiff_t i = 0; i < POINTS; ++i) {
            const T *at = Grid + (n * POINTS + i) * 2;
            const T x = position(at[0], W, CORNERS, PADDING), y = position(at[1], H, CORNERS, PADDING);
            const T left = NEAREST ? rint(x) : floor(x), top = NEAREST ? rint(y) : floor(y);
            for (ptrdiff_t c = 0; c < C; ++c) {
                T total = 0;
                for (int k = 0; k < (NEAREST ? 1 : 4); ++k) {
                    const T row = top + (T)(k / 2), column = left + (T)(k % 2);
                    const T down = k / 2 ? y - top : 1 - (y - top), across = k % 2 ? x - left : 1 - (x - left);
                    const T share = NEAREST ? (T)1 : down * across;
                    const bool inside = row >= 0 && row < (T)H && column >= 0 && column < (T)W;
                    const ptrdiff_t from = inside ? (ptrdiff_t)row * W + (ptrdiff_t)column : 0;
                    total += inside ? X[(n * C + c) * H * W + from] * share : share * (T)0;
                }
                Output[(n * C + c) * POINTS + i] = total;
            }
        }
}
