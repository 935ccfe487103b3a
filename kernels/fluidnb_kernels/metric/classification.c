// How often a classifier is right.

// Accuracy = Correct / Total; a row is right when its label is among its K indices.
void accuracy(const I *Indices, const I *Label, float *Accuracy, int32_t *Correct, int32_t *Total) {
    int32_t correct = 0;
    for (ptrdiff_t i = 0; i < ROWS; ++i) {
        bool hit = false;
        for (ptrdiff_t k = 0; k < K; ++k) hit |= Indices[i * K + k] == Label[i];
        correct += hit;
    }
    if (Accuracy) *Accuracy = ROWS ? (float)correct / (float)ROWS : 0.0f;
    if (Correct) *Correct = correct;
    if (Total) *Total = ROWS;
}
