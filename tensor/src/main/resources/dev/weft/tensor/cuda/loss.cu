// Cross-entropy over class indices and the negative log-likelihood, with their gradients: T is the
// type of the numbers, R that of a result. Row r has n classes `inner` elements apart, beginning at
// (r / inner) * n * inner + r % inner. Targets are 64-bit integers.
typedef typename Traits<T>::acc A;

__device__ __forceinline__ float exp_of(float x) { return expf(x); }
__device__ __forceinline__ double exp_of(double x) { return exp(x); }
__device__ __forceinline__ float log_of(float x) { return logf(x); }
__device__ __forceinline__ double log_of(double x) { return log(x); }
template <typename X> __device__ __forceinline__ X larger(X x, X y) { return (x > y || x != x) ? x : y; }


// The maximum m of a row and the sum of e^(x - m), by a warp or a block.
template <bool WARP> __device__ __forceinline__ void spread(A& m, A& s) {
  // Partial results of other lanes have other maxima.
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    A m2 = __shfl_xor_sync(0xffffffffu, m, o), s2 = __shfl_xor_sync(0xffffffffu, s, o);
    A top = larger(m, m2);
    s = (s == 0 ? (A)0 : s * exp_of(m - top)) + (s2 == 0 ? (A)0 : s2 * exp_of(m2 - top));
    m = top;
  }
  if (!WARP) {
    __shared__ A part_m[32], part_s[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    __syncthreads();
    if (lane == 0) {
      part_m[warp] = m;
      part_s[warp] = s;
    }
    __syncthreads();
    m = lane < warps ? part_m[lane] : (A)-INF_F;
    s = lane < warps ? part_s[lane] : (A)0;
    #pragma unroll
    for (int o = 16; o > 0; o >>= 1) {
      A m2 = __shfl_xor_sync(0xffffffffu, m, o), s2 = __shfl_xor_sync(0xffffffffu, s, o);
      A top = larger(m, m2);
      s = (s == 0 ? (A)0 : s * exp_of(m - top)) + (s2 == 0 ? (A)0 : s2 * exp_of(m2 - top));
      m = top;
    }
  }
}

template <bool WARP>
__device__ __forceinline__ void statistics(const T* x, i64 n, i64 inner, A& m, A& s) {
  m = -INF_F;
  s = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    A v = up(x[i * inner]);
    if (v > m || v != v) {
      s = (s == 0 ? (A)0 : s * exp_of(m - v)) + 1;
      m = v;
    } else if (v > (A)-INF_F || m != m) {
      s += exp_of(v - m);
    }
  }
  spread<WARP>(m, s);
  // No class is possible, or one is infinitely likely: the difference of infinities.
  if (m == (A)-INF_F || m == (A)INF_F) s = (A)NAN_F;
}

template <bool WARP>
__device__ __forceinline__ void row_loss(const T* __restrict__ in, const i64* __restrict__ target,
                                         A* __restrict__ losses, i64 r, i64 n, i64 inner, i64 ignore, double smoothing,
                                         i64* fault, i64 op) {
  i64 t = target[r];
  if (t == ignore || t < 0 || t >= n) {
    if (threadIdx.x == 0) {
      if (t != ignore) report_fault((u64*)fault, (int)op, t, n);
      losses[r] = t == ignore ? (A)0 : (A)NAN_F;
    }
    return;
  }
  const T* x = in + r / inner * n * inner + r % inner;
  A m, s;
  statistics<WARP>(x, n, inner, m, s);
  A mean = 0;
  if (smoothing != 0) {
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) mean += up(x[i * inner]) - m;
    mean = WARP ? warp_sum(mean) : block_sum(mean);
    mean /= n;
  }
  if (threadIdx.x == 0) {
    A picked = up(x[t * inner]) - m;
    A loss = log_of(s) - ((A)1 - (A)smoothing) * picked;
    losses[r] = smoothing != 0 ? loss - (A)smoothing * mean : loss;
  }
}

extern "C" __global__ void cross_entropy_short(const T* in, const i64* target, A* losses, i64 rows, i64 n, i64 inner,
                                               i64 ignore, double smoothing, i64* fault, i64 op) {
  i64 r = (i64)blockIdx.x * blockDim.y + threadIdx.y;
  if (r < rows) row_loss<true>(in, target, losses, r, n, inner, ignore, smoothing, fault, op);
}

extern "C" __global__ void cross_entropy_long(const T* in, const i64* target, A* losses, i64 rows, i64 n, i64 inner,
                                              i64 ignore, double smoothing, i64* fault, i64 op) {
  row_loss<false>(in, target, losses, blockIdx.x, n, inner, ignore, smoothing, fault, op);
}

extern "C" __global__ void nll(const T* __restrict__ in, const i64* __restrict__ target, A* __restrict__ losses, i64 rows,
                               i64 n, i64 inner, i64 ignore, i64* fault, i64 op) {
  i64 r = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (r >= rows) return;
  i64 t = target[r];
  if (t == ignore) {
    losses[r] = 0;
  } else if (t < 0 || t >= n) {
    report_fault((u64*)fault, (int)op, t, n);
    losses[r] = (A)NAN_F;
  } else {
    losses[r] = -up(in[r / inner * n * inner + r % inner + t * inner]);
  }
}

// One block: the sum of all losses, divided by the number of targets that count where `mean`.
extern "C" __global__ void loss_total(const A* __restrict__ losses, const i64* __restrict__ target, R* __restrict__ out,
                                      i64 rows, i64 ignore, int mean) {
  double s = 0, count = 0;
  for (i64 r = threadIdx.x; r < rows; r += blockDim.x) {
    s += losses[r];
    count += target[r] != ignore;
  }
  s = block_sum(s);
  count = block_sum(count);
  if (threadIdx.x == 0) out[0] = down<R>(mean ? s / count : s);
}

extern "C" __global__ void loss_each(const A* __restrict__ losses, R* __restrict__ out, i64 rows) {
  i64 r = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) out[r] = down<R>(losses[r]);
}

// One block: the number of targets that count.
extern "C" __global__ void loss_count(const i64* __restrict__ target, double* __restrict__ out, i64 rows, i64 ignore) {
  double count = 0;
  for (i64 r = threadIdx.x; r < rows; r += blockDim.x) count += target[r] != ignore;
  count = block_sum(count);
  if (threadIdx.x == 0) out[0] = count;
}

// The gradient of a row's loss: g has `g_step` 1 where each row has its own, else 0.
template <bool WARP>
__device__ __forceinline__ void row_gradient(const R* __restrict__ g, int g_step, const T* __restrict__ in,
                                             const i64* __restrict__ target, const double* __restrict__ count,
                                             T* __restrict__ out, i64 r, i64 n, i64 inner, i64 ignore, double smoothing,
                                             i64* fault, i64 op) {
  i64 t = target[r];
  i64 at = r / inner * n * inner + r % inner;
  T* y = out + at;
  if (t == ignore || t < 0 || t >= n) {
    if (t != ignore && threadIdx.x == 0) report_fault((u64*)fault, (int)op, t, n);
    T none = down<T>(t == ignore ? (A)0 : (A)NAN_F);
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) y[i * inner] = none;
    return;
  }
  const T* x = in + at;
  A m, s;
  statistics<WARP>(x, n, inner, m, s);
  A scale = (A)up(g[g_step ? r : 0]);
  if (count) scale = (A)(scale / *count);
  A f = scale / s, uniform = scale * (A)smoothing / n, hit = scale * ((A)1 - (A)smoothing);
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    A v = exp_of(up(x[i * inner]) - m) * f - uniform;
    y[i * inner] = down<T>(i == t ? v - hit : v);
  }
}

extern "C" __global__ void cross_entropy_backward_short(const R* g, int g_step, const T* in, const i64* target,
                                                        const double* count, T* out, i64 rows, i64 n, i64 inner,
                                                        i64 ignore, double smoothing, i64* fault, i64 op) {
  i64 r = (i64)blockIdx.x * blockDim.y + threadIdx.y;
  if (r < rows) row_gradient<true>(g, g_step, in, target, count, out, r, n, inner, ignore, smoothing, fault, op);
}

extern "C" __global__ void cross_entropy_backward_long(const R* g, int g_step, const T* in, const i64* target,
                                                       const double* count, T* out, i64 rows, i64 n, i64 inner,
                                                       i64 ignore, double smoothing, i64* fault, i64 op) {
  row_gradient<false>(g, g_step, in, target, count, out, blockIdx.x, n, inner, ignore, smoothing, fault, op);
}

// A thread for each element of the gradient.
extern "C" __global__ void nll_backward(const R* __restrict__ g, int g_step, const i64* __restrict__ target,
                                        const double* __restrict__ count, T* __restrict__ out, i64 elements, i64 n,
                                        i64 inner, i64 ignore, i64* fault, i64 op) {
  i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < elements; i += step) {
    i64 c = i / inner % n;
    i64 r = i / inner / n * inner + i % inner;
    i64 t = target[r];
    A v = 0;
    if (t != ignore) {
      if (t < 0 || t >= n) {
        if (c == 0) report_fault((u64*)fault, (int)op, t, n);
        v = (A)NAN_F;
      } else if (t == c) {
        A scale = (A)up(g[g_step ? r : 0]);
        v = count ? (A)(-scale / *count) : -scale;
      }
    }
    out[i] = down<T>(v);
  }
}
