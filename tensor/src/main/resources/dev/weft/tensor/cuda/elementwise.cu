// One elementwise operator. Defined by the caller: OP, one of the structs below; ARITY, its number
// of tensors; IN0, IN1, IN2, their types (of those not used, IN0's); OUT, the result's; ACC, the
// type to compute in: float, double or i64. s and t are the operator's numbers. PART: 0 for the
// kernel of dense tensors, which most calls need, 1 for strided ones by vectors, 2 for the others;
// what is not used isn't compiled.
#define FN __device__ __forceinline__

FN float m_exp(float x) { return expf(x); }
FN double m_exp(double x) { return exp(x); }
FN float m_log(float x) { return logf(x); }
FN double m_log(double x) { return log(x); }
FN float m_log1p(float x) { return log1pf(x); }
FN double m_log1p(double x) { return log1p(x); }
FN float m_sqrt(float x) { return sqrtf(x); }
FN double m_sqrt(double x) { return sqrt(x); }
FN float m_rsqrt(float x) { return rsqrtf(x); }
FN double m_rsqrt(double x) { return rsqrt(x); }
FN float m_sin(float x) { return sinf(x); }
FN double m_sin(double x) { return sin(x); }
FN float m_cos(float x) { return cosf(x); }
FN double m_cos(double x) { return cos(x); }
FN float m_tanh(float x) { return tanhf(x); }
FN double m_tanh(double x) { return tanh(x); }
FN float m_erf(float x) { return erff(x); }
FN double m_erf(double x) { return erf(x); }
FN float m_atan2(float y, float x) { return atan2f(y, x); }
FN double m_atan2(double y, double x) { return atan2(y, x); }
FN float m_floor(float x) { return floorf(x); }
FN double m_floor(double x) { return floor(x); }
FN i64 m_floor(i64 x) { return x; }
FN float m_ceil(float x) { return ceilf(x); }
FN double m_ceil(double x) { return ceil(x); }
FN i64 m_ceil(i64 x) { return x; }
FN float m_round(float x) { return rintf(x); }
FN double m_round(double x) { return rint(x); }
FN i64 m_round(i64 x) { return x; }
FN float m_pow(float x, float y) { return powf(x, y); }
FN double m_pow(double x, double y) { return pow(x, y); }
FN i64 m_pow(i64 x, i64 y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? ((y & 1) == 0 ? 1 : -1) : 0;
  u64 r = 1, b = (u64)x;
  for (; y > 0; y >>= 1) {
    if (y & 1) r *= b;
    b *= b;
  }
  return (i64)r;
}

// Operators of one tensor and the numbers s, t.
#define UNARY(NAME, RESULT) \
  struct NAME { template <typename X> static FN X run(X x, X s, X t) { return RESULT; } };
// Of two and three tensors.
#define BINARY(NAME, RESULT) \
  struct NAME { template <typename X> static FN X run(X x, X y, X s, X t) { return RESULT; } };
#define TERNARY(NAME, RESULT) \
  struct NAME { template <typename X> static FN X run(X x, X y, X z, X s, X t) { return RESULT; } };
// A truth value of two tensors, or of one and s.
#define COMPARE(NAME, RESULT) \
  struct NAME { \
    template <typename X> static FN bool run(X x, X y, X, X) { return RESULT; } \
    template <typename X> static FN bool run(X x, X y, X) { return RESULT; } \
  };
#define PREDICATE(NAME, RESULT) \
  struct NAME { template <typename X> static FN bool run(X x, X, X) { return RESULT; } };

BINARY(Add, x + s * y)
BINARY(Sub, x - s * y)
BINARY(Mul, x * y)
BINARY(Div, x / y)
BINARY(Pow, m_pow(x, y))
BINARY(Maximum, x != x ? x : y != y ? y : x > y ? x : y)
BINARY(Minimum, x != x ? x : y != y ? y : x < y ? x : y)
BINARY(Atan2, m_atan2(x, y))
UNARY(AddScalar, x + s)
UNARY(SubScalar, x - s)
UNARY(RsubScalar, s - x)
UNARY(MulScalar, x * s)
UNARY(DivScalar, x / s)
UNARY(RdivScalar, s / x)
UNARY(PowScalar, s == (X)2 ? x * x : s == (X)1 ? x : m_pow(x, s))
TERNARY(Addcmul, x + s * y * z)
TERNARY(Addcdiv, x + s * y / z)
TERNARY(Lerp, z < (X)0.5 ? x + z * (y - x) : y - (y - x) * (1 - z))
BINARY(LerpScalar, s < (X)0.5 ? x + s * (y - x) : y - (y - x) * (1 - s))
TERNARY(Where, x != (X)0 ? y : z)
BINARY(MaskedFill, y != (X)0 ? s : x)
UNARY(Clamp, x != x ? x : x < s ? (s > t ? t : s) : x > t ? t : x)

UNARY(Neg, -x)
UNARY(Abs, x < (X)0 ? -x : x == (X)0 ? (X)0 : x)
UNARY(Square, x * x)
UNARY(Sign, x > (X)0 ? (X)1 : x < (X)0 ? (X)-1 : (X)0)
UNARY(Floor, m_floor(x))
UNARY(Ceil, m_ceil(x))
UNARY(Round, m_round(x))
UNARY(Exp, m_exp(x))
UNARY(Log, m_log(x))
UNARY(Log1p, m_log1p(x))
UNARY(Sqrt, m_sqrt(x))
UNARY(Rsqrt, m_rsqrt(x))
UNARY(Reciprocal, (X)1 / x)
UNARY(Sin, m_sin(x))
UNARY(Cos, m_cos(x))
UNARY(Tanh, m_tanh(x))
UNARY(Erf, m_erf(x))
UNARY(Sigmoid, (X)1 / ((X)1 + m_exp(-x)))

COMPARE(Eq, x == y)
COMPARE(Ne, x != y)
COMPARE(Lt, x < y)
COMPARE(Le, x <= y)
COMPARE(Gt, x > y)
COMPARE(Ge, x >= y)
COMPARE(LogicalAnd, x != (X)0 && y != (X)0)
COMPARE(LogicalOr, x != (X)0 || y != (X)0)
COMPARE(LogicalXor, (x != (X)0) != (y != (X)0))
typedef Eq EqScalar;
typedef Ne NeScalar;
typedef Lt LtScalar;
typedef Le LeScalar;
typedef Gt GtScalar;
typedef Ge GeScalar;
PREDICATE(LogicalNot, x == (X)0)
PREDICATE(Isnan, x != x)

#define SQRT_HALF 0.70710678118654752440
#define INV_SQRT_2PI 0.39894228040143267794
#define SQRT_2_BY_PI 0.79788456080286535588
#define CUBIC 0.044715
template <typename X> FN X normal(X x) { return (X)0.5 * ((X)1 + m_erf(x * (X)SQRT_HALF)); }
template <typename X> FN X inner(X x) { return m_tanh((X)SQRT_2_BY_PI * (x + (X)CUBIC * x * x * x)); }
template <typename X> FN X logistic(X x) { return (X)1 / ((X)1 + m_exp(-x)); }
UNARY(Relu, x != x || x > (X)0 ? x : (X)0)
UNARY(LeakyRelu, x > (X)0 ? x : x * s)
UNARY(Silu, x * logistic(x))
UNARY(Gelu, x * normal(x))
UNARY(GeluTanh, (X)0.5 * x * ((X)1 + inner(x)))
// x is the gradient; y the output for relu, sigmoid and tanh, else the input.
BINARY(ReluBackward, y > (X)0 ? x : (X)0)
BINARY(LeakyReluBackward, y > (X)0 ? x : x * s)
BINARY(SigmoidBackward, x * ((X)1 - y) * y)
BINARY(TanhBackward, x * ((X)1 - y * y))
struct SiluBackward {
  template <typename X> static FN X run(X g, X x, X, X) {
    X s = logistic(x);
    return g * s * ((X)1 + x * ((X)1 - s));
  }
};
struct GeluBackward {
  template <typename X> static FN X run(X g, X x, X, X) {
    return g * (normal(x) + x * (X)INV_SQRT_2PI * m_exp((X)-0.5 * x * x));
  }
};
struct GeluTanhBackward {
  template <typename X> static FN X run(X g, X x, X, X) {
    X t = inner(x);
    X slope = (X)SQRT_2_BY_PI * ((X)1 + (X)(3 * CUBIC) * x * x);
    return g * ((X)0.5 * ((X)1 + t) + (X)0.5 * x * ((X)1 - t * t) * slope);
  }
};

#if ARITY == 1
#define RUN(x, y, z) OP::run((ACC)up(x), s, t)
#elif ARITY == 2
#define RUN(x, y, z) OP::run((ACC)up(x), (ACC)up(y), s, t)
#else
#define RUN(x, y, z) OP::run((ACC)up(x), (ACC)up(y), (ACC)up(z), s, t)
#endif

// As many elements as fit into 16 bytes of the widest type that takes part.
template <int X, int Y> struct Larger { enum { value = X > Y ? X : Y }; };
constexpr int WIDTH =
    16 / Larger<Larger<sizeof(IN0), sizeof(OUT)>::value, Larger<sizeof(IN1), sizeof(IN2)>::value>::value;
#define UNROLL 2

// Elements [k * W, k * W + W), or W times the only one.
template <typename T, int W> FN Vec<T, W> take(const T* p, i64 at, bool uniform) {
  if (uniform) {
    Vec<T, W> v;
    T x = *(p + (W == 1 ? 0 : at));
    #pragma unroll
    for (int j = 0; j < W; j++) v.v[j] = x;
    return v;
  }
  return *(const Vec<T, W>*)(p + at);
}

template <int W>
FN void dense(const IN0* a, const IN1* b, const IN2* d, OUT* o, i64 n, int uniform, ACC s, ACC t) {
  i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  i64 step = (i64)gridDim.x * blockDim.x;
  bool ua = uniform & 1, ub = uniform & 2, ud = uniform & 4;
  i64 whole = n / W;
  for (i64 k = first; k < whole; k += UNROLL * step) {
    Vec<IN0, W> x[UNROLL];
    Vec<IN1, W> y[UNROLL];
    Vec<IN2, W> z[UNROLL];
    #pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      i64 at = (k + u * step) * W;
      if (k + u * step < whole) {
        x[u] = take<IN0, W>(a, ua ? 0 : at, ua);
        if (ARITY > 1) y[u] = take<IN1, W>(b, ub ? 0 : at, ub);
        if (ARITY > 2) z[u] = take<IN2, W>(d, ud ? 0 : at, ud);
      }
    }
    #pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      if (k + u * step < whole) {
        Vec<OUT, W> r;
        #pragma unroll
        for (int j = 0; j < W; j++) r.v[j] = down<OUT>(RUN(x[u].v[j], y[u].v[j], z[u].v[j]));
        *(Vec<OUT, W>*)(o + (k + u * step) * W) = r;
      }
    }
  }
  for (i64 k = whole * W + first; k < n; k += step) {
    IN0 x = a[ua ? 0 : k];
    IN1 y;
    IN2 z;
    if (ARITY > 1) y = b[ub ? 0 : k];
    if (ARITY > 2) z = d[ud ? 0 : k];
    o[k] = down<OUT>(RUN(x, y, z));
  }
}

#if PART == 0
extern "C" __global__ void dense_vector(const IN0* a, const IN1* b, const IN2* d, OUT* o, i64 n,
                                        int uniform, ACC s, ACC t) {
  dense<WIDTH>(a, b, d, o, n, uniform, s, t);
}
#elif PART == 2
extern "C" __global__ void dense_single(const IN0* a, const IN1* b, const IN2* d, OUT* o, i64 n,
                                        int uniform, ACC s, ACC t) {
  dense<1>(a, b, d, o, n, uniform, s, t);
}
#endif

// Over strided tensors: n steps of W neighbours in the innermost dimension, whose size and strides
// are given in steps; a uniform tensor has one element for all W.
template <int W>
FN void walk(const IN0* a, const IN1* b, const IN2* d, OUT* o, i64 n, int ndim, int uniform, ACC s, ACC t,
            const Dims& sizes, const Dims& as, const Dims& bs, const Dims& ds, const Dims& os) {
  i64 step = (i64)gridDim.x * blockDim.x;
  bool ua = uniform & 1, ub = uniform & 2, ud = uniform & 4;
  for (i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += step) {
    i64 pa = 0, pb = 0, pd = 0, po = 0, i = k;
    #pragma unroll 1
    for (int m = 0; m < ndim; m++) {
      i64 size = sizes.d[m], r;
      if (i <= 0x7fffffff && size <= 0x7fffffff) {
        u32 q = (u32)i / (u32)size;
        r = (u32)i - q * (u32)size;
        i = q;
      } else {
        i64 q = i / size;
        r = i - q * size;
        i = q;
      }
      pa += r * as.d[m];
      if (ARITY > 1) pb += r * bs.d[m];
      if (ARITY > 2) pd += r * ds.d[m];
      po += r * os.d[m];
    }
    Vec<IN0, W> x = take<IN0, W>(a + pa, 0, ua);
    Vec<IN1, W> y;
    Vec<IN2, W> z;
    if (ARITY > 1) y = take<IN1, W>(b + pb, 0, ub);
    if (ARITY > 2) z = take<IN2, W>(d + pd, 0, ud);
    Vec<OUT, W> r;
    #pragma unroll
    for (int j = 0; j < W; j++) r.v[j] = down<OUT>(RUN(x.v[j], y.v[j], z.v[j]));
    *(Vec<OUT, W>*)(o + po) = r;
  }
}

#if PART == 1
extern "C" __global__ void walk_vector(const IN0* a, const IN1* b, const IN2* d, OUT* o, i64 n, int ndim,
                                       int uniform, ACC s, ACC t, Dims sizes, Dims as, Dims bs,
                                       Dims ds, Dims os) {
  walk<WIDTH>(a, b, d, o, n, ndim, uniform, s, t, sizes, as, bs, ds, os);
}
#elif PART == 2
extern "C" __global__ void walk_single(const IN0* a, const IN1* b, const IN2* d, OUT* o, i64 n, int ndim,
                                       int uniform, ACC s, ACC t, Dims sizes, Dims as, Dims bs,
                                       Dims ds, Dims os) {
  walk<1>(a, b, d, o, n, ndim, uniform, s, t, sizes, as, bs, ds, os);
}
#endif
