// Steps of optimizers. An output may be its input's memory.

// p' = p - lr · g
void sgd(const T *Param, const T *Grad, const T *LearningRate, T *ParamOut) {
    const T rate = LearningRate[0];
    for (ptrdiff_t i = 0; i < COUNT; ++i) ParamOut[i] = Param[i] - rate * Grad[i];
}

// v' = MU · v + g; p' = p - lr · v', or p - lr · (g + MU · v') with Nesterov; g = FACTOR · Grad + DECAY · Param
void momentum(const T *Param, const T *Grad, const T *Velocity, const T *LearningRate, T *ParamOut, T *VelocityOut) {
    const T rate = LearningRate[0];
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T g = FACTOR * Grad[i] + DECAY * Param[i], v = MU * Velocity[i] + g;
        VelocityOut[i] = v;
        ParamOut[i] = Param[i] - rate * (NESTEROV ? MU * v + g : v);
    }
}

// m' = BETA1 · m + (1 - BETA1) · g; v' = BETA2 · v + (1 - BETA2) · g²; p' = p - lr · c2 / c1 · m' / (√v' + EPSILON · c2)
// with c1 = 1 - Beta1Pow, c2 = √(1 - Beta2Pow); p without its share lr · DECAY
void adam(const T *Param, const T *Grad, const T *LearningRate, const T *Moment1, const T *Moment2, const T *Beta1Pow,
          const T *Beta2Pow, T *ParamOut, T *Moment1Out, T *Moment2Out, T *Beta1PowOut, T *Beta2PowOut) {
    const T rate = RATIO * LearningRate[0], power1 = Beta1Pow[0], power2 = Beta2Pow[0];
    const T root = sqrt((T)1 - power2), step = root * rate / ((T)1 - power1), small = root * EPSILON;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T g = Grad[i], m = BETA1 * Moment1[i] + ((T)1 - BETA1) * g;
        const T v = BETA2 * Moment2[i] + ((T)1 - BETA2) * g * g;
        Moment1Out[i] = m;
        Moment2Out[i] = v;
        ParamOut[i] = Param[i] * ((T)1 - rate * DECAY) - step * m / (sqrt(v) + small);
    }
    if (Beta1PowOut) Beta1PowOut[0] = ADVANCES ? power1 * BETA1 : power1;
    if (Beta2PowOut) Beta2PowOut[0] = ADVANCES ? power2 * BETA2 : power2;
}

// m' = BETA1 · m + (1 - BETA1) · g; n' = max(BETA2 · n + EPSILON, |g|); p' = p - lr / (1 - Beta1Pow) · m' / n'
void adamax(const T *Param, const T *Grad, const T *LearningRate, const T *Moment, const T *InfNorm, const T *Beta1Pow,
            T *ParamOut, T *MomentOut, T *InfNormOut) {
    const T step = LearningRate[0] / ((T)1 - Beta1Pow[0]);
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T g = Grad[i], m = BETA1 * Moment[i] + ((T)1 - BETA1) * g;
        const T norm = fmax(BETA2 * InfNorm[i] + EPSILON, fabs(g));
        MomentOut[i] = m;
        InfNormOut[i] = norm;
        ParamOut[i] = Param[i] - step * m / norm;
    }
}

// m' = STAYS · m + COMES · g²; p' = p - lr · g / (√m' + EPSILON)
void adagrad(const T *Param, const T *Grad, const T *Moment, const T *LearningRate, T *ParamOut, T *MomentOut) {
    const T rate = LearningRate[0];
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T g = Grad[i], m = STAYS * Moment[i] + COMES * g * g;
        MomentOut[i] = m;
        ParamOut[i] = Param[i] - rate * g / (sqrt(m) + EPSILON);
    }
}

// a' = RHO · a + (1 - RHO) · g²; s = √((u + EPSILON) / (a' + EPSILON)) · g; u' = RHO · u + (1 - RHO) · s²;
// p' = p - lr · s
void adadelta(const T *Param, const T *Grad, const T *AvgSquaredGrad, const T *AvgSquaredUpdate, const T *LearningRate,
              T *ParamOut, T *AvgSquaredGradOut, T *AvgSquaredUpdateOut) {
    const T rate = LearningRate ? LearningRate[0] : (T)1;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T g = Grad[i], mean = RHO * AvgSquaredGrad[i] + ((T)1 - RHO) * g * g;
        const T step = sqrt((AvgSquaredUpdate[i] + EPSILON) / (mean + EPSILON)) * g;
        AvgSquaredGradOut[i] = mean;
        AvgSquaredUpdateOut[i] = RHO * AvgSquaredUpdate[i] + ((T)1 - RHO) * step * step;
        ParamOut[i] = Param[i] - rate * step;
    }
}

// s' = DECAY · s + (1 - DECAY) · g²; v' = MOMENTUM · v + lr · g / √(s' - a'² + EPSILON); p' = p - v';
// a' = DECAY · a + (1 - DECAY) · g when centered, else a counts as 0 and stays
void rmsprop(const T *Param, const T *Grad, const T *MeanSquare, const T *Moment, const T *LearningRate,
             const T *MeanGrad, T *ParamOut, T *MomentOut, T *MeanSquareOut, T *MeanGradOut) {
    const T rate = LearningRate[0];
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T g = Grad[i], square = DECAY * MeanSquare[i] + ((T)1 - DECAY) * g * g, old = MeanGrad ? MeanGrad[i] : (T)0;
        const T mean = CENTERED ? DECAY * old + ((T)1 - DECAY) * g : (T)0;
        const T step = MOMENTUM * Moment[i] + rate * g / sqrt(square + EPSILON - mean * mean);
        MeanSquareOut[i] = square;
        if (MeanGradOut) MeanGradOut[i] = CENTERED ? mean : old;
        MomentOut[i] = step;
        ParamOut[i] = Param[i] - step;
    }
}

// r = m' / (1 - Beta1Pow) / (√(v' / (1 - Beta2Pow)) + EPSILON) + DECAY · p; p' = p - lr · |p| / |r| · r
void lamb(const T *Param, const T *Grad, const T *LearningRate, const T *Moment1, const T *Moment2, const T *Beta1Pow,
          const T *Beta2Pow, T *ParamOut, T *Moment1Out, T *Moment2Out, T *Beta1PowOut, T *Beta2PowOut) {
    const T power1 = Beta1Pow[0], power2 = Beta2Pow[0];
    double sizes = 0, lengths = 0;
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T g = Grad[i], m = BETA1 * Moment1[i] + ((T)1 - BETA1) * g;
        const T v = BETA2 * Moment2[i] + ((T)1 - BETA2) * g * g;
        const T r = m / ((T)1 - power1) / (sqrt(v / ((T)1 - power2)) + EPSILON) + DECAY * Param[i];
        Moment1Out[i] = m;
        Moment2Out[i] = v;
        sizes += (double)Param[i] * (double)Param[i];
        lengths += (double)r * (double)r;
    }
    const T rate = LearningRate[0] * (ADAPTS && sizes > 0 && lengths > 0 ? (T)sqrt(sizes / lengths) : (T)1);
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T scale = sqrt(Moment2Out[i] / ((T)1 - power2)) + EPSILON;
        const T r = Moment1Out[i] / ((T)1 - power1) / scale + DECAY * Param[i];
        ParamOut[i] = Param[i] - rate * r;
    }
    if (Beta1PowOut) Beta1PowOut[0] = power1 * BETA1;
    if (Beta2PowOut) Beta2PowOut[0] = power2 * BETA2;
}

// the proximal point of q: sign(q) · max(0, |q| - lr · l1) / (1 + lr · l2)
static T shrunk(T q, T rate, T l1, T l2) {
    const T size = fabs(q) - rate * l1;
    return size <= (T)0 ? (T)0 : (q < (T)0 ? -size : size) / ((T)1 + rate * l2);
}

// p' = the proximal point of p - lr · g
void proximal_gd(const T *Param, const T *Grad, const T *LearningRate, T *ParamOut) {
    const T rate = LearningRate[0];
    for (ptrdiff_t i = 0; i < COUNT; ++i) ParamOut[i] = shrunk(Param[i] - rate * Grad[i], rate, L1, L2);
}

// m' = m + g²; p' = the proximal point of p - lr · g / √m'
void proximal_adagrad(const T *Param, const T *Grad, const T *Moment, const T *LearningRate, T *ParamOut,
                      T *MomentOut) {
    const T rate = LearningRate[0];
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T m = Moment[i] + Grad[i] * Grad[i];
        MomentOut[i] = m;
        ParamOut[i] = shrunk(Param[i] - rate * Grad[i] / sqrt(m), rate, L1, L2);
    }
}

// z = linear + g - (s'^POWER - s^POWER) / lr · p, s' = s + g²; p' = (z held between -L1 and L1 - z) / (s'^POWER / lr + L2)
void ftrl(const T *Param, const T *Grad, const T *SquaredAccumulator, const T *LinearAccumulator,
          const T *LearningRate, T *ParamOut, T *SquaredAccumOut, T *LinearAccumOut) {
    const T rate = LearningRate[0];
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T g = Grad[i], old = SquaredAccumulator[i], total = old + g * g, root = pow(total, POWER);
        const T z = LinearAccumulator[i] + g - (root - pow(old, POWER)) / rate * Param[i];
        const T inside = z < -L1 ? -L1 : z > L1 ? L1 : z;
        ParamOut[i] = (inside - z) / (root / rate + L2);
        SquaredAccumOut[i] = total;
        LinearAccumOut[i] = z;
    }
}
