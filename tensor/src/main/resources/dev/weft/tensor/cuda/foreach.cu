// Sums of squares and scaling of many tensors in one launch: T is the type of the numbers. A block
// has a chunk of one tensor; `first` tells which chunk each tensor begins with.
#define CHUNK 32768
#define TENSORS 192
typedef typename Traits<T>::acc A;
#define V (16 / (int)sizeof(T))
typedef Vec<T, V> Wide;

struct Table {
  u64 x[TENSORS];
  i64 n[TENSORS];
  i32 first[TENSORS + 1];
  i32 count;
};

__device__ __forceinline__ int owner(const i32* first, int count, int chunk) {
  int low = 0, high = count;
  while (high - low > 1) {
    int middle = (low + high) >> 1;
    if (first[middle] <= chunk) low = middle;
    else high = middle;
  }
  return low;
}

// partial[chunk] = the sum of squares of a chunk.
extern "C" __global__ void __launch_bounds__(256) foreach_squares(const __grid_constant__ Table table, A* __restrict__ partial) {
  int t = owner(table.first, table.count, blockIdx.x);
  i64 at = (i64)(blockIdx.x - table.first[t]) * CHUNK;
  i64 left = table.n[t] - at;
  int n = left < CHUNK ? (int)left : CHUNK;
  const T* x = (const T*)table.x[t] + at;
  int whole = (u64)x % 16 == 0 ? n / V : 0;
  A s = 0;
  #pragma unroll 4
  for (int i = threadIdx.x; i < whole; i += blockDim.x) {
    Wide w = ((const Wide*)x)[i];
    #pragma unroll
    for (int j = 0; j < V; j++) s += up(w.v[j]) * up(w.v[j]);
  }
  for (int i = V * whole + threadIdx.x; i < n; i += blockDim.x) s += up(x[i]) * up(x[i]);
  s = block_sum(s);
  if (threadIdx.x == 0) partial[blockIdx.x] = s;
}

// One block: the sum of partial sums, added to what `total` holds where `more`.
extern "C" __global__ void foreach_total(const A* __restrict__ partial, double* __restrict__ total, int count, int more) {
  double s = 0;
  for (int i = threadIdx.x; i < count; i += blockDim.x) s += (double)partial[i];
  s = block_sum(s);
  if (threadIdx.x == 0) total[0] = more ? total[0] + s : s;
}

// Multiplies by min(1, most / (norm + 1e-6)) for the norm's square; a factor of NaN counts.
extern "C" __global__ void __launch_bounds__(256) foreach_clip(const __grid_constant__ Table table, const double* __restrict__ square,
                                                               double most) {
  double factor = most / (sqrt(*square) + 1e-6);
  if (factor >= 1) return;
  A f = (A)factor;
  int t = owner(table.first, table.count, blockIdx.x);
  i64 at = (i64)(blockIdx.x - table.first[t]) * CHUNK;
  i64 left = table.n[t] - at;
  int n = left < CHUNK ? (int)left : CHUNK;
  T* x = (T*)table.x[t] + at;
  int whole = (u64)x % 16 == 0 ? n / V : 0;
  for (int i = threadIdx.x; i < whole; i += blockDim.x) {
    Wide w = ((const Wide*)x)[i];
    #pragma unroll
    for (int j = 0; j < V; j++) w.v[j] = down<T>(up(w.v[j]) * f);
    ((Wide*)x)[i] = w;
  }
  for (int i = V * whole + threadIdx.x; i < n; i += blockDim.x) x[i] = down<T>(up(x[i]) * f);
}
