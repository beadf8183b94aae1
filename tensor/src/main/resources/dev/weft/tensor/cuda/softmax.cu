// Softmax, its logarithm and their gradients along rows: T is the type of the numbers. A row has n
// elements `step` apart; row r begins at (r / inner) * n * inner + r % inner, with step = inner,
// where the dimension is not the last; else at r * pitch, with step = 1.
typedef typename Traits<T>::acc A;

__device__ __forceinline__ float exp_of(float x) { return expf(x); }
__device__ __forceinline__ double exp_of(double x) { return exp(x); }
__device__ __forceinline__ float log_of(float x) { return logf(x); }
__device__ __forceinline__ double log_of(double x) { return log(x); }

// The larger one; NaN wins.
template <typename X> __device__ __forceinline__ X larger(X x, X y) { return (x > y || x != x) ? x : y; }

template <bool WARP> struct Row {
  static __device__ __forceinline__ A sum(A x) { return WARP ? warp_sum(x) : block_sum(x); }
  static __device__ __forceinline__ A max(A x) {
    #pragma unroll
    for (int o = 16; o > 0; o >>= 1) x = larger(x, __shfl_xor_sync(0xffffffffu, x, o));
    if (WARP) return x;
    __shared__ A part[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    __syncthreads();
    if (lane == 0) part[warp] = x;
    __syncthreads();
    x = part[lane < warps ? lane : 0];
    #pragma unroll
    for (int o = 16; o > 0; o >>= 1) x = larger(x, __shfl_xor_sync(0xffffffffu, x, o));
    return x;
  }
};

// Rows of up to 32 * K elements, a warp each, held in registers.
template <int K, bool LOG>
__device__ __forceinline__ void short_rows(const T* __restrict__ in, T* __restrict__ out, i64 rows,
                                           int n, i64 pitch) {
  i64 r = (i64)blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  int lane = threadIdx.x;
  const T* x = in + r * pitch;
  T* y = out + r * n;
  A v[K];
  A m = -INF_F;
  #pragma unroll
  for (int k = 0; k < K; k++) {
    int i = k * 32 + lane;
    v[k] = i < n ? up(x[i]) : (A)-INF_F;
    m = larger(m, v[k]);
  }
  m = Row<true>::max(m);
  A s = 0;
  #pragma unroll
  for (int k = 0; k < K; k++) {
    A e = k * 32 + lane < n ? exp_of(v[k] - m) : (A)0;
    s += e;
    v[k] = LOG ? v[k] - m : e;
  }
  s = Row<true>::sum(s);
  A f = LOG ? log_of(s) : (A)1 / s;
  #pragma unroll
  for (int k = 0; k < K; k++) {
    int i = k * 32 + lane;
    if (i < n) y[i] = down<T>(LOG ? v[k] - f : v[k] * f);
  }
}

template <bool LOG>
__device__ __forceinline__ void long_rows(const T* __restrict__ in, T* __restrict__ out, i64 n, i64 pitch) {
  const T* x = in + (i64)blockIdx.x * pitch;
  T* y = out + (i64)blockIdx.x * n;
  A m = -INF_F;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) m = larger(m, up(x[i]));
  m = Row<false>::max(m);
  A s = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) s += exp_of(up(x[i]) - m);
  s = Row<false>::sum(s);
  A f = LOG ? log_of(s) : (A)1 / s;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    A v = up(x[i]) - m;
    y[i] = down<T>(LOG ? v - f : exp_of(v) * f);
  }
}

// A thread for each row; neighbouring threads have neighbouring rows.
template <bool LOG>
__device__ __forceinline__ void columns(const T* __restrict__ in, T* __restrict__ out, i64 rows, i64 n, i64 inner) {
  i64 r = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  i64 at = r / inner * n * inner + r % inner;
  A m = -INF_F;
  for (i64 i = 0; i < n; i++) m = larger(m, up(in[at + i * inner]));
  A s = 0;
  for (i64 i = 0; i < n; i++) s += exp_of(up(in[at + i * inner]) - m);
  A f = LOG ? log_of(s) : (A)1 / s;
  for (i64 i = 0; i < n; i++) {
    A v = up(in[at + i * inner]) - m;
    out[at + i * inner] = down<T>(LOG ? v - f : exp_of(v) * f);
  }
}

#define FORWARD(LABEL, LOG)                                                                        \
  extern "C" __global__ void LABEL##_128(const T* in, T* out, i64 rows, int n, i64 pitch) {        \
    short_rows<4, LOG>(in, out, rows, n, pitch);                                                   \
  }                                                                                                \
  extern "C" __global__ void LABEL##_1024(const T* in, T* out, i64 rows, int n, i64 pitch) {       \
    short_rows<32, LOG>(in, out, rows, n, pitch);                                                  \
  }                                                                                                \
  extern "C" __global__ void LABEL##_long(const T* in, T* out, i64 n, i64 pitch) {                 \
    long_rows<LOG>(in, out, n, pitch);                                                             \
  }                                                                                                \
  extern "C" __global__ void LABEL##_columns(const T* in, T* out, i64 rows, i64 n, i64 inner) {    \
    columns<LOG>(in, out, rows, n, inner);                                                         \
  }

FORWARD(softmax, false)
FORWARD(log_softmax, true)

// y (g - sum(g y)), or g - e^y sum(g).
template <bool WARP, bool LOG>
__device__ __forceinline__ void row_gradient(const T* __restrict__ g, const T* __restrict__ y,
                                             T* __restrict__ out, i64 n) {
  A s = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) s += LOG ? up(g[i]) : up(g[i]) * up(y[i]);
  s = Row<WARP>::sum(s);
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    A a = up(g[i]), b = up(y[i]);
    out[i] = down<T>(LOG ? a - exp_of(b) * s : b * (a - s));
  }
}

template <bool LOG>
__device__ __forceinline__ void column_gradient(const T* __restrict__ g, const T* __restrict__ y,
                                                T* __restrict__ out, i64 rows, i64 n, i64 inner) {
  i64 r = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  i64 at = r / inner * n * inner + r % inner;
  A s = 0;
  for (i64 i = 0; i < n; i++) {
    A a = up(g[at + i * inner]);
    s += LOG ? a : a * up(y[at + i * inner]);
  }
  for (i64 i = 0; i < n; i++) {
    A a = up(g[at + i * inner]), b = up(y[at + i * inner]);
    out[at + i * inner] = down<T>(LOG ? a - exp_of(b) * s : b * (a - s));
  }
}

#define BACKWARD(LABEL, LOG)                                                                       \
  extern "C" __global__ void LABEL##_backward_short(const T* g, const T* y, T* out, i64 rows,      \
                                                    i64 n) {                                       \
    i64 at = ((i64)blockIdx.x * blockDim.y + threadIdx.y) * n;                                     \
    if (at >= rows * n) return;                                                                    \
    row_gradient<true, LOG>(g + at, y + at, out + at, n);                                          \
  }                                                                                                \
  extern "C" __global__ void LABEL##_backward_long(const T* g, const T* y, T* out, i64 rows,       \
                                                   i64 n) {                                        \
    i64 at = (i64)blockIdx.x * n;                                                                  \
    row_gradient<false, LOG>(g + at, y + at, out + at, n);                                         \
  }                                                                                                \
  extern "C" __global__ void LABEL##_backward_columns(const T* g, const T* y, T* out, i64 rows,    \
                                                      i64 n, i64 inner) {                          \
    column_gradient<LOG>(g, y, out, rows, n, inner);                                               \
  }

BACKWARD(softmax, false)
BACKWARD(log_softmax, true)
