// Look-up of rows in a table, and the sum of gradients by row: T is the type of the numbers, indices
// are 64-bit integers. Sums are taken in the order of positions, whatever the scheduling.
typedef typename Traits<T>::acc A;
#define V (16 / (int)sizeof(T))
typedef Vec<T, V> Wide;


// What a row that does not exist gives.
template <typename X> struct Unset { static __device__ __forceinline__ X value() { return down<X>(NAN_F); } };

// One row a block of threads in x; blockDim.y rows a block.
template <typename W>
__device__ __forceinline__ void rows_of(const T* table, const i64* index, T* out, i64 count, i64 rows, i64 n,
                                        i64 pitch, i64* fault, i64 op) {
  for (i64 p = (i64)blockIdx.x * blockDim.y + threadIdx.y; p < count; p += (i64)gridDim.x * blockDim.y) {
    i64 r = index[p];
    bool there = r >= 0 && r < rows;
    if (!there && threadIdx.x == 0) report_fault((u64*)fault, (int)op, r, rows);
    const int per = sizeof(W) / sizeof(T);
    const W* from = (const W*)(table + (there ? r : 0) * pitch);
    W* to = (W*)(out + p * n);
    for (i64 i = threadIdx.x; i < n / per; i += blockDim.x) {
      W x;
      if (there) x = from[i];
      else
        for (int j = 0; j < per; j++) ((T*)&x)[j] = Unset<T>::value();
      to[i] = x;
    }
  }
}

extern "C" __global__ void embedding_wide(const T* table, const i64* index, T* out, i64 count, i64 rows, i64 n,
                                          i64 pitch, i64* fault, i64 op) {
  rows_of<Wide>(table, index, out, count, rows, n, pitch, fault, op);
}

extern "C" __global__ void embedding_single(const T* table, const i64* index, T* out, i64 count, i64 rows, i64 n,
                                            i64 pitch, i64* fault, i64 op) {
  rows_of<T>(table, index, out, count, rows, n, pitch, fault, op);
}

// How often each row occurs; counts were 0.
extern "C" __global__ void embedding_count(const i64* __restrict__ index, u32* __restrict__ counts, u32 count, i64 rows,
                                           i64* fault, i64 op) {
  for (u32 p = blockIdx.x * blockDim.x + threadIdx.x; p < count; p += gridDim.x * blockDim.x) {
    i64 r = index[p];
    if (r >= 0 && r < rows) atomicAdd(counts + r, 1u);
    else report_fault((u64*)fault, (int)op, r, rows);
  }
}

// One block: starts[r] = the sum of counts before r, and again in `next`.
extern "C" __global__ void embedding_starts(const u32* __restrict__ counts, u32* __restrict__ starts,
                                            u32* __restrict__ next, i64 rows) {
  __shared__ u32 part[32];
  __shared__ u32 before;
  if (threadIdx.x == 0) before = 0;
  __syncthreads();
  for (i64 from = 0; from < rows; from += blockDim.x) {
    i64 r = from + threadIdx.x;
    u32 own = r < rows ? counts[r] : 0, x = own;
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    #pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      u32 y = __shfl_up_sync(0xffffffffu, x, o);
      if (lane >= o) x += y;
    }
    if (lane == 31) part[warp] = x;
    __syncthreads();
    if (warp == 0) {
      u32 w = lane < (int)(blockDim.x >> 5) ? part[lane] : 0;
      #pragma unroll
      for (int o = 1; o < 32; o <<= 1) {
        u32 y = __shfl_up_sync(0xffffffffu, w, o);
        if (lane >= o) w += y;
      }
      part[lane] = w;
    }
    __syncthreads();
    u32 start = before + (warp > 0 ? part[warp - 1] : 0) + x - own;
    if (r < rows) {
      starts[r] = start;
      next[r] = start;
    }
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1) before = start + own;
    __syncthreads();
  }
}

// The positions of each row, in any order.
extern "C" __global__ void embedding_places(const i64* __restrict__ index, u32* __restrict__ next,
                                            u32* __restrict__ places, u32 count, i64 rows) {
  for (u32 p = blockIdx.x * blockDim.x + threadIdx.x; p < count; p += gridDim.x * blockDim.x) {
    i64 r = index[p];
    if (r >= 0 && r < rows) places[atomicAdd(next + r, 1u)] = p;
  }
}

#define SORTED 1024
#define THREADS 128

// A block has one row of the table and a slice of its columns, THREADS * V of them.
template <int W>
__device__ __forceinline__ void add(const T* __restrict__ g, i64 n, i64 column, const u32* list, int size, A* sum) {
  int k = 0;
  for (; k + 4 <= size; k += 4) {
    Vec<T, W> x[4];
    #pragma unroll
    for (int j = 0; j < 4; j++) x[j] = *(const Vec<T, W>*)(g + (i64)list[k + j] * n + column);
    #pragma unroll
    for (int j = 0; j < 4; j++)
      #pragma unroll
      for (int w = 0; w < W; w++) sum[w] += up(x[j].v[w]);
  }
  for (; k < size; k++) {
    Vec<T, W> x = *(const Vec<T, W>*)(g + (i64)list[k] * n + column);
    #pragma unroll
    for (int w = 0; w < W; w++) sum[w] += up(x.v[w]);
  }
}

template <int W>
__device__ __forceinline__ void row_sum(const T* __restrict__ g, const i64* __restrict__ index,
                                        const u32* __restrict__ counts, const u32* __restrict__ starts,
                                        const u32* __restrict__ places, T* __restrict__ out, u32 count, i64 n,
                                        i64 padding) {
  __shared__ u32 list[SORTED];
  __shared__ int found;
  i64 r = blockIdx.x;
  i64 column = ((i64)blockIdx.y * THREADS + threadIdx.x) * W;
  u32 size = r == padding ? 0 : counts[r];
  A sum[W];
  #pragma unroll
  for (int w = 0; w < W; w++) sum[w] = 0;
  if (size > 0 && size <= SORTED) {
    int padded = 1;
    while (padded < (int)size) padded <<= 1;
    for (int i = threadIdx.x; i < padded; i += THREADS) list[i] = i < (int)size ? places[starts[r] + i] : 0xffffffffu;
    __syncthreads();
    for (int k = 2; k <= padded; k <<= 1) {
      for (int j = k >> 1; j > 0; j >>= 1) {
        for (int i = threadIdx.x; i < padded; i += THREADS) {
          int other = i ^ j;
          if (other > i) {
            u32 a = list[i], b = list[other];
            if ((a > b) == ((i & k) == 0)) {
              list[i] = b;
              list[other] = a;
            }
          }
        }
        __syncthreads();
      }
    }
    if (column < n) add<W>(g, n, column, list, (int)size, sum);
  } else if (size > SORTED) {
    // Found again in order, THREADS positions at a time, by one warp after the other.
    for (u32 from = 0; from < count; from += THREADS) {
      u32 p = from + threadIdx.x;
      bool mine = p < count && index[p] == r;
      u32 votes = __ballot_sync(0xffffffffu, mine);
      int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
      __shared__ int warps[THREADS / 32];
      if (lane == 0) warps[warp] = __popc(votes);
      __syncthreads();
      int at = __popc(votes & ((1u << lane) - 1));
      for (int w = 0; w < warp; w++) at += warps[w];
      if (mine) list[at] = p;
      if (threadIdx.x == 0) {
        int all = 0;
        for (int w = 0; w < THREADS / 32; w++) all += warps[w];
        found = all;
      }
      __syncthreads();
      if (column < n) add<W>(g, n, column, list, found, sum);
      __syncthreads();
    }
  }
  if (column < n) {
    Vec<T, W> y;
    #pragma unroll
    for (int w = 0; w < W; w++) y.v[w] = down<T>(sum[w]);
    *(Vec<T, W>*)(out + r * n + column) = y;
  }
}

extern "C" __global__ void embedding_sum_wide(const T* g, const i64* index, const u32* counts, const u32* starts,
                                              const u32* places, T* out, u32 count, i64 n, i64 padding) {
  row_sum<V>(g, index, counts, starts, places, out, count, n, padding);
}

extern "C" __global__ void embedding_sum_single(const T* g, const i64* index, const u32* counts, const u32* starts,
                                                const u32* places, T* out, u32 count, i64 n, i64 padding) {
  row_sum<1>(g, index, counts, starts, places, out, count, n, padding);
}
