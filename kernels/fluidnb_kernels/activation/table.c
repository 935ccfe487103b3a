// Functions of each element and their gradients. VALUE is the expression of the row; A, B and C are its numbers.

// x between two bounds
static T limited(T x, T low, T high) {
    return x < low ? low : x > high ? high : x;
}

// 1 where x lies between two bounds, else 0
static T between(T x, T low, T high) {
    return x > low && x < high ? (T)1 : (T)0;
}

// 1 / (1 + exp(-x))
static T logistic(T x) {
    return (T)1 / ((T)1 + exp(-x));
}

// x without what is behind its point
static T whole(T x) {
    return trunc(x);
}

// log(1 + exp(x)) without overflow
static T soft(T x) {
    return (x > (T)0 ? x : (T)0) + log1p(exp(x > (T)0 ? -x : x));
}

// the share of a normal distribution below x
static T share_below(T x) {
    return (erf(x * (T)0.7071067811865476) + (T)1) * (T)0.5;
}

// the tanh of the approximation of gelu
static T bent(T x) {
    return tanh((T)0.7978845608028654 * (x + (T)0.044715 * x * x * x));
}

// the slope of gelu
static T gelu_slope(T x) {
    return x * (T)0.3989422804014327 * exp((T)-0.5 * x * x) + share_below(x);
}

// the slope of the approximation of gelu
static T bent_slope(T x) {
    const T t = bent(x), inner = (T)0.7978845608028654 * x * ((T)1 + (T)0.134145 * x * x);
    return (inner * ((T)1 - t * t) + t + (T)1) * (T)0.5;
}

// x at least eps away from 0 and 1; any x where eps is 0
static T inside(T x, T eps) {
    return eps > (T)0 ? limited(x, eps, (T)1 - eps) : x;
}

// Out = VALUE
void unary(const T *X, T *Out) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T x = X[i];
        Out[i] = VALUE;
    }
}

// dX = VALUE, where v is X and g is dOut
void unary_grad_of_x(const T *X, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T v = X[i], g = Out_GRAD[i];
        X_GRAD[i] = VALUE;
    }
}

// dX = VALUE, where v is Out and g is dOut
void unary_grad_of_out(const T *Out, const T *Out_GRAD, T *X_GRAD) {
    for (ptrdiff_t i = 0; i < COUNT; ++i) {
        const T v = Out[i], g = Out_GRAD[i];
        X_GRAD[i] = VALUE;
    }
}

// dX = 0
void unary_grad_of_none(const T *Out_GRAD, T *X_GRAD) {
    (void)Out_GRAD;
    for (ptrdiff_t i = 0; i < COUNT; ++i) X_GRAD[i] = 0;
}
