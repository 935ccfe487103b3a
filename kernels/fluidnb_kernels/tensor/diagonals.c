// Triangles of matrices.

// Out = X on one side of a diagonal, 0 on the other
void triangle(const T *X, T *Out) {
    for (ptrdiff_t p = 0; p < MATRICES; ++p)
        for (ptrdiff_t i = 0; i < HEIGHT; ++i)
            for (ptrdiff_t j = 0; j < WIDTH; ++j, ++X) *Out++ = j - i SIDE DIAGONAL ? *X : (T)0;
}

// dX = dOut on one side of a diagonal, 0 on the other
void triangle_grad(const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t p = 0; p < MATRICES; ++p)
        for (ptrdiff_t i = 0; i < HEIGHT; ++i)
            for (ptrdiff_t j = 0; j < WIDTH; ++j, ++Out_GRAD) *X_GRAD++ = j - i SIDE DIAGONAL ? *Out_GRAD : (T)0;
}
