// RMS and layer normalisation of rows of n elements, with gradients: T is the type of the numbers, O
// that of the result and its gradient, LAYER is 1 for layer normalisation. A block has blockDim.y rows of blockDim.x threads: several
// rows only where a warp has one each. Kernels ending in _wide hold a row in registers, V elements
// of 16 bytes at a time, up to HELD such vectors a thread.
typedef typename Traits<T>::acc A;
#define V (16 / (int)sizeof(T))
#define HELD 4
typedef Vec<T, V> Wide;

__device__ __forceinline__ float root(float x) { return sqrtf(x); }
__device__ __forceinline__ double root(double x) { return sqrt(x); }

__device__ __forceinline__ A row_sum(A x) { return blockDim.x == 32 ? warp_sum(x) : block_sum(x); }

struct Held {
  A v[HELD][V];

  template <typename X> __device__ __forceinline__ void load(const X* row, int n) {
    #pragma unroll
    for (int k = 0; k < HELD; k++) {
      int at = (k * blockDim.x + threadIdx.x) * V;
      if (at < n) {
        Vec<X, V> x = *(const Vec<X, V>*)(row + at);
        #pragma unroll
        for (int j = 0; j < V; j++) v[k][j] = up(x.v[j]);
      } else {
        #pragma unroll
        for (int j = 0; j < V; j++) v[k][j] = 0;
      }
    }
  }

  template <typename X> __device__ __forceinline__ void store(X* row, int n) const {
    #pragma unroll
    for (int k = 0; k < HELD; k++) {
      int at = (k * blockDim.x + threadIdx.x) * V;
      if (at < n) {
        Vec<X, V> x;
        #pragma unroll
        for (int j = 0; j < V; j++) x.v[j] = down<X>(v[k][j]);
        *(Vec<X, V>*)(row + at) = x;
      }
    }
  }
};

// Takes the mean off where the norm does, and tells the inverse deviation.
__device__ __forceinline__ A centre(Held& x, int n, A eps) {
  A mean = 0;
  if (LAYER) {
    A s = 0;
    #pragma unroll
    for (int k = 0; k < HELD; k++)
      #pragma unroll
      for (int j = 0; j < V; j++) s += x.v[k][j];
    mean = row_sum(s) / n;
  }
  A s = 0;
  #pragma unroll
  for (int k = 0; k < HELD; k++) {
    if ((k * blockDim.x + threadIdx.x) * V < n) {
      #pragma unroll
      for (int j = 0; j < V; j++) {
        if (LAYER) x.v[k][j] -= mean;
        s += x.v[k][j] * x.v[k][j];
      }
    }
  }
  return (A)1 / root(row_sum(s) / n + eps);
}

extern "C" __global__ void norm_wide(const T* __restrict__ in, const T* __restrict__ weight,
                                     const T* __restrict__ bias, O* __restrict__ out, i64 rows, int n, double eps) {
  i64 r = (i64)blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  Held x;
  x.load(in + r * n, n);
  A s = centre(x, n, (A)eps);
  #pragma unroll
  for (int k = 0; k < HELD; k++) {
    int at = (k * blockDim.x + threadIdx.x) * V;
    if (at < n) {
      #pragma unroll
      for (int j = 0; j < V; j++) x.v[k][j] *= s;
      if (weight) {
        Wide w = *(const Wide*)(weight + at);
        #pragma unroll
        for (int j = 0; j < V; j++) x.v[k][j] *= up(w.v[j]);
      }
      if (bias) {
        Wide b = *(const Wide*)(bias + at);
        #pragma unroll
        for (int j = 0; j < V; j++) x.v[k][j] += up(b.v[j]);
      }
    }
  }
  x.store(out + r * n, n);
}

// With z the normalised row and h = g weight: (h - z mean(h z)) / deviation, and for layer
// normalisation less mean(h) / deviation.
extern "C" __global__ void norm_backward_wide(const O* __restrict__ g, const T* __restrict__ in,
                                              const T* __restrict__ weight, T* __restrict__ out, i64 rows, int n,
                                              double eps) {
  i64 r = (i64)blockIdx.x * blockDim.y + threadIdx.y;
  if (r >= rows) return;
  Held x, h;
  x.load(in + r * n, n);
  h.load(g + r * n, n);
  A s = centre(x, n, (A)eps);
  A dot = 0, sum = 0;
  #pragma unroll
  for (int k = 0; k < HELD; k++) {
    int at = (k * blockDim.x + threadIdx.x) * V;
    if (at < n) {
      if (weight) {
        Wide w = *(const Wide*)(weight + at);
        #pragma unroll
        for (int j = 0; j < V; j++) h.v[k][j] *= up(w.v[j]);
      }
      #pragma unroll
      for (int j = 0; j < V; j++) {
        x.v[k][j] *= s;
        dot += h.v[k][j] * x.v[k][j];
        sum += h.v[k][j];
      }
    }
  }
  dot = row_sum(dot) / n;
  if (LAYER) sum = row_sum(sum) / n;
  #pragma unroll
  for (int k = 0; k < HELD; k++)
    #pragma unroll
    for (int j = 0; j < V; j++) {
      A d = h.v[k][j] - x.v[k][j] * dot;
      x.v[k][j] = s * (LAYER ? d - sum : d);
    }
  x.store(out + r * n, n);
}

// The sum of g z over a range of rows of each block, in a row of `partial` each.
extern "C" __global__ void norm_weight_wide(const O* __restrict__ g, const T* __restrict__ in,
                                            A* __restrict__ partial, i64 rows, int n, double eps) {
  __shared__ A sums[32 * HELD * V * 4];
  i64 groups = (i64)gridDim.x * blockDim.y;
  i64 group = (i64)blockIdx.x * blockDim.y + threadIdx.y;
  i64 from = rows * group / groups, to = rows * (group + 1) / groups;
  Held sum;
  #pragma unroll
  for (int k = 0; k < HELD; k++)
    #pragma unroll
    for (int j = 0; j < V; j++) sum.v[k][j] = 0;
  for (i64 r = from; r < to; r++) {
    Held x, h;
    x.load(in + r * n, n);
    h.load(g + r * n, n);
    A s = centre(x, n, (A)eps);
    #pragma unroll
    for (int k = 0; k < HELD; k++)
      #pragma unroll
      for (int j = 0; j < V; j++) sum.v[k][j] += h.v[k][j] * (x.v[k][j] * s);
  }
  if (blockDim.y > 1) {
    // blockDim.y is 4 at most, blockDim.x 32.
    int width = 32 * HELD * V;
    #pragma unroll
    for (int k = 0; k < HELD; k++)
      #pragma unroll
      for (int j = 0; j < V; j++) sums[threadIdx.y * width + (k * 32 + threadIdx.x) * V + j] = sum.v[k][j];
    __syncthreads();
    for (int i = threadIdx.y * 32 + threadIdx.x; i < n; i += blockDim.y * 32) {
      A s = 0;
      for (int y = 0; y < (int)blockDim.y; y++) s += sums[y * width + i];
      partial[(i64)blockIdx.x * n + i] = s;
    }
    return;
  }
  #pragma unroll
  for (int k = 0; k < HELD; k++) {
    int at = (k * blockDim.x + threadIdx.x) * V;
    if (at < n) {
      #pragma unroll
      for (int j = 0; j < V; j++) partial[(i64)blockIdx.x * n + at + j] = sum.v[k][j];
    }
  }
}

// out[i] = the sum of `count` rows of partial at column i: 32 columns a block, 8 threads a column.
extern "C" __global__ void norm_weight_sum(const A* __restrict__ partial, T* __restrict__ out, int count, i64 n) {
  __shared__ A part[8][33];
  i64 i = (i64)blockIdx.x * 32 + threadIdx.x;
  A s = 0;
  if (i < n) {
    for (int r = threadIdx.y; r < count; r += 8) s += partial[(i64)r * n + i];
  }
  part[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.y == 0 && i < n) {
    #pragma unroll
    for (int y = 1; y < 8; y++) s += part[y][threadIdx.x];
    out[i] = down<T>(s);
  }
}

// The same for any n and any alignment, one block a row.
__device__ __forceinline__ A moments(const T* x, i64 n, A eps, A& mean) {
  mean = 0;
  if (LAYER) {
    A s = 0;
    for (i64 i = threadIdx.x; i < n; i += blockDim.x) s += up(x[i]);
    mean = block_sum(s) / n;
  }
  A s = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    A d = up(x[i]) - mean;
    s += d * d;
  }
  return (A)1 / root(block_sum(s) / n + eps);
}

extern "C" __global__ void norm_any(const T* __restrict__ in, const T* __restrict__ weight,
                                    const T* __restrict__ bias, O* __restrict__ out, i64 rows, i64 n, double eps) {
  const T* x = in + (i64)blockIdx.x * n;
  O* y = out + (i64)blockIdx.x * n;
  A mean, s = moments(x, n, (A)eps, mean);
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    A v = (up(x[i]) - mean) * s;
    if (weight) v *= up(weight[i]);
    if (bias) v += up(bias[i]);
    y[i] = down<O>(v);
  }
}

extern "C" __global__ void norm_backward_any(const O* __restrict__ g, const T* __restrict__ in,
                                             const T* __restrict__ weight, T* __restrict__ out, i64 rows, i64 n,
                                             double eps) {
  const T* x = in + (i64)blockIdx.x * n;
  const O* h = g + (i64)blockIdx.x * n;
  T* y = out + (i64)blockIdx.x * n;
  A mean, s = moments(x, n, (A)eps, mean);
  A dot = 0, sum = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    A a = (A)up(h[i]) * (weight ? up(weight[i]) : (A)1);
    dot += a * ((up(x[i]) - mean) * s);
    sum += a;
  }
  dot = block_sum(dot) / n;
  sum = LAYER ? block_sum(sum) / n : (A)0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    A a = (A)up(h[i]) * (weight ? up(weight[i]) : (A)1);
    y[i] = down<T>(s * (a - (up(x[i]) - mean) * s * dot - sum));
  }
}

// Mean and inverse deviation of each row, for the next kernel.
extern "C" __global__ void norm_moments(const T* __restrict__ in, A* __restrict__ moment, i64 rows, i64 n, double eps) {
  A mean, s = moments(in + (i64)blockIdx.x * n, n, (A)eps, mean);
  if (threadIdx.x == 0) {
    moment[2 * (i64)blockIdx.x] = mean;
    moment[2 * (i64)blockIdx.x + 1] = s;
  }
}

extern "C" __global__ void norm_weight_any(const O* __restrict__ g, const T* __restrict__ in,
                                           const A* __restrict__ moment, A* __restrict__ partial, i64 rows, i64 n) {
  i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  i64 from = rows * blockIdx.y / gridDim.y, to = rows * (blockIdx.y + 1) / gridDim.y;
  if (i >= n) return;
  A s = 0;
  for (i64 r = from; r < to; r++) {
    s += (A)up(g[r * n + i]) * ((up(in[r * n + i]) - moment[2 * r]) * moment[2 * r + 1]);
  }
  partial[(i64)blockIdx.y * n + i] = s;
}
