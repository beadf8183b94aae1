// The steps of attention between products of matrices: T is float or double. Scores are dense
// [heads, rows, keys]; row r of a head is query `first + r` of `queries`.

__device__ __forceinline__ float exp_of(float x) { return expf(x); }
__device__ __forceinline__ double exp_of(double x) { return exp(x); }
__device__ __forceinline__ float log_of(float x) { return logf(x); }
__device__ __forceinline__ double log_of(double x) { return log(x); }
__device__ __forceinline__ T larger(T x, T y) { return (x > y || x != x) ? x : y; }

__device__ __forceinline__ T block_larger(T x) {
  __shared__ T part[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) x = larger(x, __shfl_xor_sync(0xffffffffu, x, o));
  __syncthreads();
  if (lane == 0) part[warp] = x;
  __syncthreads();
  x = part[lane < warps ? lane : 0];
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) x = larger(x, __shfl_xor_sync(0xffffffffu, x, o));
  return x;
}

// Scores to probabilities, in place; keys that a query does not see get 0.
extern "C" __global__ void attention_softmax(T* __restrict__ scores, T* __restrict__ lse, int rows, i64 keys, i64 first,
                                             i64 queries, int causal) {
  i64 head = blockIdx.x / rows, query = first + blockIdx.x % rows;
  T* x = scores + (i64)blockIdx.x * keys;
  i64 seen = causal && query + 1 < keys ? query + 1 : keys;
  T m = -INF_F;
  for (i64 i = threadIdx.x; i < seen; i += blockDim.x) m = larger(m, x[i]);
  m = block_larger(m);
  T s = 0;
  for (i64 i = threadIdx.x; i < seen; i += blockDim.x) {
    T e = exp_of(x[i] - m);
    x[i] = e;
    s += e;
  }
  s = block_sum(s);
  for (i64 i = threadIdx.x; i < keys; i += blockDim.x) x[i] = i < seen ? x[i] / s : (T)0;
  if (threadIdx.x == 0) lse[head * queries + query] = m + log_of(s);
}

// delta = the sum of g o over rows of n.
extern "C" __global__ void attention_delta(const T* __restrict__ g, const T* __restrict__ o, T* __restrict__ delta, i64 n) {
  T s = 0;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) s += g[(i64)blockIdx.x * n + i] * o[(i64)blockIdx.x * n + i];
  s = block_sum(s);
  if (threadIdx.x == 0) delta[blockIdx.x] = s;
}

// Scores to probabilities and their gradients to those of scores, both in place. delta has the rows
// of this call.
extern "C" __global__ void attention_gradient(T* __restrict__ scores, T* __restrict__ gradient,
                                              const T* __restrict__ lse, const T* __restrict__ delta, int rows, i64 keys,
                                              i64 first, i64 queries, int causal) {
  i64 head = blockIdx.x / rows, query = first + blockIdx.x % rows;
  T* x = scores + (i64)blockIdx.x * keys;
  T* y = gradient + (i64)blockIdx.x * keys;
  i64 seen = causal && query + 1 < keys ? query + 1 : keys;
  T low = lse[head * queries + query], mean = delta[blockIdx.x];
  for (i64 i = threadIdx.x; i < keys; i += blockDim.x) {
    T p = i < seen ? exp_of(x[i] - low) : (T)0;
    x[i] = p;
    y[i] = i < seen ? p * (y[i] - mean) : (T)0;
  }
}
