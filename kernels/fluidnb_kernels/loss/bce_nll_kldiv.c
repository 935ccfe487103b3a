// Losses of logarithms of probabilities.

// Loss = Target · (log Target - X), 0 where Target is not positive; each of them, or their sum / PARTS
void kldiv_loss(const T *X, const T *Target, T *Loss) {
    double total = 0;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T loss = Target[i] > (T)0 ? Target[i] * (log(Target[i]) - X[i]) : (T)0;
        if (EACH) Loss[i] = loss;
        total += (double)loss;
    }
    if (!EACH) Loss[0] = (T)(total / (double)PARTS);
}

// dX = -dLoss · Target where Target is positive, divided as Loss was
void kldiv_loss_grad(const T *Target, const T *Loss_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i)
        X_GRAD[i] = Target[i] > (T)0 ? -Target[i] * Loss_GRAD[EACH ? i : 0] / (T)PARTS : (T)0;
}

// the weight of a label: 0 where it is ignored, not a number where it is no class
static T weight_of(const T *weight, ptrdiff_t label, ptrdiff_t classes, ptrdiff_t ignored) {
    if (label == ignored) return 0;
    return label < 0 || label >= classes ? (T)NAN : weight ? weight[label] : (T)1;
}

// Out = -Weight[Label] · X[Label] for each label, or their sum, or that divided by the sum of the weights
void nll_loss(const T *X, const I *Label, const T *Weight, T *Out, T *Total_weight) {
    double total = 0, weights = 0;
    for (ptrdiff_t i = 0; i < ROWS * INNER; ++i) {
        const ptrdiff_t label = (ptrdiff_t)Label[i];
        const T weight = weight_of(Weight, label, CLASSES, IGNORED);
        const bool fits = label >= 0 && label < CLASSES;
        const T loss = fits ? -weight * X[(i / INNER * CLASSES + label) * INNER + i % INNER] : weight;
        if (EACH) Out[i] = loss;
        total += (double)loss;
        weights += (double)weight;
    }
    if (Total_weight) Total_weight[0] = (T)weights;
    if (!EACH) Out[0] = (T)(MEAN && weights != 0 ? total / weights : total);
}

// dX = -Weight[Label] · dOut at the label's class, divided as the loss was
void nll_loss_grad(const I *Label, const T *Weight, const T *Total_weight, const T *Out_GRAD, T *X_GRAD) {
    const T parts = MEAN && Total_weight[0] != (T)0 ? Total_weight[0] : (T)1;
    for (ptrdiff_t i = 0; i < ROWS * INNER; ++i) {
        const ptrdiff_t label = (ptrdiff_t)Label[i];
        const T share = -weight_of(Weight, label, CLASSES, IGNORED) * Out_GRAD[EACH ? i : 0] / parts;
        for (ptrdiff_t k = 0; k < CLASSES; ++k)
            X_GRAD[(i / INNER * CLASSES + k) * INNER + i % INNER] = k == label ? share : (T)0;
    }
}
