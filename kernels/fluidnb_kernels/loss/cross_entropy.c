// Losses of classes, along lines of N classes that are INNER apart; SOFT labels are a probability for each class.

// the label of a line where it is a class, -1 where it is to be ignored, -2 where it is no class
static ptrdiff_t class_of(ptrdiff_t label, ptrdiff_t classes, ptrdiff_t ignored) {
    return label == ignored ? -1 : label >= 0 && label < classes ? label : -2;
}

// -log p, where the logarithm of 0 counts as -1e20
static T loss_of(T p) {
    const T level = log(p), least = -100000000000000000000.0f;
    return level > least ? -level : -least;
}

// Softmax = softmax(Logits); Loss = -log Softmax[Label], or -Σ Label · log Softmax
void softmax_with_cross_entropy(const T *Logits, const I *Label, T *Softmax, T *Loss) {
    for (ptrdiff_t i = 0; i < OUTER; ++i)
        for (ptrdiff_t j = 0; j < INNER; ++j) {
            const T *x = Logits + i * N * INNER + j;
            T most = x[0], total = 0, loss = 0;
            for (ptrdiff_t k = 1; k < N; ++k) most = x[k * INNER] > most ? x[k * INNER] : most;
            for (ptrdiff_t k = 0; k < N; ++k) total += exp(fmax(x[k * INNER] - most, (T)-64));
            const T level = log(total);
            if (SOFT) {
                const I *share = Label + i * N * INNER + j;
                for (ptrdiff_t k = 0; k < N; ++k)
                    loss += (T)share[k * INNER] * (level - fmax(x[k * INNER] - most, (T)-64));
            } else {
                const ptrdiff_t label = class_of((ptrdiff_t)Label[i * INNER + j], N, IGNORED);
                loss = label >= 0 ? level - fmax(x[label * INNER] - most, (T)-64) : label == -1 ? (T)0 : (T)NAN;
            }
            if (Softmax) {
                T *p = Softmax + i * N * INNER + j;
                for (ptrdiff_t k = 0; k < N; ++k) p[k * INNER] = exp(fmax(x[k * INNER] - most, (T)-64)) / total;
            }
            Loss[i * INNER + j] = loss;
        }
}

// dLogits = dLoss · (Softmax - Label), Label as a distribution; 0 in lines that are ignored
void softmax_with_cross_entropy_grad(const T *Softmax, const I *Label, const T *Loss_GRAD, T *Logits_GRAD) {
    for (ptrdiff_t i = 0; i < OUTER; ++i)
        for (ptrdiff_t j = 0; j < INNER; ++j) {
            const ptrdiff_t from = i * N * INNER + j;
            const ptrdiff_t label = SOFT ? 0 : class_of((ptrdiff_t)Label[i * INNER + j], N, IGNORED);
            for (ptrdiff_t k = 0; k < N; ++k) {
                const ptrdiff_t at = from + k * INNER;
                const T wanted = SOFT ? (T)Label[at] : label == -2 ? (T)NAN : (T)(label == k);
                Logits_GRAD[at] = label == -1 ? (T)0 : (Softmax[at] - wanted) * Loss_GRAD[i * INNER + j];
            }
        }
}

// Y = -log X[Label], or -Σ Label · log X; 0 in lines that are ignored
void cross_entropy(const T *X, const I *Label, T *Y, T *MatchX) {
    for (ptrdiff_t i = 0; i < OUTER; ++i) {
        const T *x = X + i * N;
        T loss = 0;
        if (SOFT) {
            for (ptrdiff_t k = 0; k < N; ++k) loss += (T)Label[i * N + k] * loss_of(x[k]);
        } else {
            const ptrdiff_t label = class_of((ptrdiff_t)Label[i], N, IGNORED);
            loss = label >= 0 ? loss_of(x[label]) : label == -1 ? (T)0 : (T)NAN;
            if (MatchX) MatchX[i] = label >= 0 ? x[label] : (T)0;
        }
        Y[i] = loss;
    }
}

// dX = -dY · Label / X, or -dY / X at the label, 0 elsewhere and in lines that are ignored
void cross_entropy_grad(const T *X, const T *MatchX, const I *Label, const T *Y_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < OUTER; ++i) {
        const ptrdiff_t label = SOFT ? 0 : class_of((ptrdiff_t)Label[i], N, IGNORED);
        for (ptrdiff_t k = 0; k < N; ++k) {
            const ptrdiff_t at = i * N + k;
            const T wanted = SOFT ? (T)Label[at] : label == -2 ? (T)NAN : (T)(label == k);
            X_GRAD[at] = SOFT || label == k || label == -2 ? -Y_GRAD[i] * wanted / (MatchX ? MatchX[i] : X[at]) : (T)0;
        }
    }
}
