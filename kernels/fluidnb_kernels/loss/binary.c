// Losses of yes or no.

// how many labels count; 1 where losses are not divided by it
static T counted(const T *label, ptrdiff_t n, T ignored, bool divided) {
    ptrdiff_t count = 0;
    for (ptrdiff_t i = 0; i < n; ++i) count += label[i] != ignored;
    return !divided ? (T)1 : count ? (T)count : (T)0.00001;
}

// Out = max(X, 0) - X · Label + log(1 + exp(-|X|)), 0 where the label is ignored
void sigmoid_cross_entropy_with_logits(const T *X, const T *Label, T *Out) {
    const T share = counted(Label, COUNT, IGNORED, DIVIDED);
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T loss = log1p(exp(-fabs(X[i]))) + (X[i] > (T)0 ? X[i] : (T)0) - X[i] * Label[i];
        Out[i] = Label[i] == IGNORED ? (T)0 : loss / share;
    }
}

// dX = dOut · (sigmoid(X) - Label), 0 where the label is ignored
void sigmoid_cross_entropy_with_logits_grad(const T *X, const T *Label, const T *Out_GRAD, T *X_GRAD) {
    const T share = counted(Label, COUNT, IGNORED, DIVIDED);
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T slope = ((T)1 / ((T)1 + exp(-X[i])) - Label[i]) * Out_GRAD[i];
        X_GRAD[i] = Label[i] == IGNORED ? (T)0 : slope / share;
    }
}
