// Losses of each element, and their gradients. FIRST and SECOND are the expressions of the row in the .cu file, of the
// operands x, y, z and w, the numbers a and b, and for SECOND the value one of FIRST.

// x, but at least low
static T above(T x, T low) {
    return x < low ? low : x;
}

// x between two bounds
static T held(T x, T low, T high) {
    return x < low ? low : x > high ? high : x;
}

// -1 for a label 0, 1 for a label 1
static T signs(T label) {
    return label * (T)2 - (T)1;
}

// 1 / (1 + exp(-x))
static T logistic(T x) {
    return (T)1 / ((T)1 + exp(-x));
}

// log(1 + exp(x)) without overflow
static T soft(T x) {
    return (x > (T)0 ? x : (T)0) + log1p(exp(x > (T)0 ? -x : x));
}

// x² / 2 up to a width, a line beyond
static T bowl(T x, T width) {
    const T far = fabs(x), near = far > width ? width : far;
    return (near * (T)-0.5 + far) * near;
}

// Loss = FIRST
void log_loss(const T *Predicted, const T *Labels, T *Loss) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = Predicted[i], y = Labels[i];
        Loss[i] = FIRST;
    }
}

// dPredicted = FIRST
void log_loss_grad(const T *Predicted, const T *Labels, const T *Loss_GRAD, T *Predicted_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = Predicted[i], y = Labels[i], z = Loss_GRAD[i];
        Predicted_GRAD[i] = FIRST;
    }
}

// Loss = FIRST
void hinge_loss(const T *Logits, const T *Labels, T *Loss) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = Logits[i], y = Labels[i];
        Loss[i] = FIRST;
    }
}

// dLogits = FIRST
void hinge_loss_grad(const T *Logits, const T *Labels, const T *Loss_GRAD, T *Logits_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = Logits[i], y = Labels[i], z = Loss_GRAD[i];
        Logits_GRAD[i] = FIRST;
    }
}

// Out = FIRST
void bce_loss(const T *X, const T *Label, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = X[i], y = Label[i];
        Out[i] = FIRST;
    }
}

// dX = FIRST
void bce_loss_grad(const T *X, const T *Label, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = X[i], y = Label[i], z = Out_GRAD[i];
        X_GRAD[i] = FIRST;
    }
}

// Residual = FIRST; Out = SECOND
void huber_loss(const T *X, const T *Y, T *Residual, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = X[i], y = Y[i], one = FIRST;
        if (Residual) Residual[i] = one;
        Out[i] = SECOND;
    }
}

// dY = FIRST; dX = SECOND
void huber_loss_grad(const T *Residual, const T *Out_GRAD, T *X_GRAD, T *Y_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = Residual[i], y = Out_GRAD[i], one = FIRST;
        if (Y_GRAD) Y_GRAD[i] = one;
        if (X_GRAD) X_GRAD[i] = SECOND;
    }
}

// Out = FIRST
void rank_loss(const T *Left, const T *Right, const T *Label, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = Left[i], y = Right[i], z = Label[i];
        Out[i] = FIRST;
    }
}

// dLeft = FIRST; dRight = SECOND
void rank_loss_grad(const T *Left, const T *Right, const T *Label, const T *Out_GRAD, T *Left_GRAD, T *Right_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = Left[i], y = Right[i], z = Label[i], w = Out_GRAD[i], one = FIRST;
        if (Left_GRAD) Left_GRAD[i] = one;
        if (Right_GRAD) Right_GRAD[i] = SECOND;
    }
}

// dX = FIRST
void label_smooth_grad(const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = Out_GRAD[i];
        X_GRAD[i] = FIRST;
    }
}
