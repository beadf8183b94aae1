// Scaled dot-product attention in float32 without the matrix of scores; D is the head size, 32, 64 or
// 128. The algorithms and parameters are those of flash.cu. With EXACT 1 products are float32's own,
// each thread having 8 rows by 2 to 8 columns of a result; with EXACT 0 their factors are rounded to
// TF32 and go to tensor cores, a warp having 16 rows. Strides count elements; rows are dense and lie
// at multiples of 16 bytes.
#if EXACT
// A warp's lanes are ACROSS by 32 / ACROSS.
#define ACROSS (D <= 64 ? 8 : 16)
#define DOWN (32 / ACROSS)
#define THREADS (16 * ACROSS)
#define WARP_ROWS (8 * DOWN)
#define TILE 128
#else
#define THREADS 128
#define WARP_ROWS 16
#define TILE 64
#endif
#define CHUNKS (D / 4)
#define LOG2E 1.4426950408889634f

struct Strides { i64 batch, head, row; };
struct alignas(16) Four { float v[4]; };

__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The place of 4 elements of a row of a tile, in such: lanes that read together lie in different banks.
__device__ __forceinline__ int swizzled(int row, int chunk) {
#if EXACT
  return row * CHUNKS + (chunk ^ (row & 7));
#else
  return row * CHUNKS + (chunk ^ ((row & 6) ^ ((row & 1) << 2)));
#endif
}

__device__ __forceinline__ void copy16(Four* to, const float* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"((u32)__cvta_generic_to_shared(to)), "l"(from), "r"(there ? 16 : 0) : "memory");
}
__device__ __forceinline__ void fetched() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void await() {
  asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory");
}

// Begins to copy rows of a head into a tile; rows past the end are zeros.
template <int ROWS>
__device__ __forceinline__ void fetch(Four* tile, const float* from, i64 pitch, int row, int rows) {
  #pragma unroll
  for (int c = threadIdx.x; c < ROWS * CHUNKS; c += THREADS) {
    int r = c / CHUNKS, chunk = c % CHUNKS;
    bool there = row + r < rows;
    copy16(tile + swizzled(r, chunk), from + (there ? (i64)(row + r) * pitch : 0) + chunk * 4, there);
  }
}

// Which head and tile a block has; `backwards` puts the last tile first.
__device__ __forceinline__ void whose(int count, int heads, int tiles, bool backwards, i64& b, i64& h, int& tile) {
  int head = blockIdx.x % count;
  tile = blockIdx.x / count;
  if (backwards) tile = tiles - 1 - tile;
  b = head / heads;
  h = head % heads;
}

// delta = the sum of g o over a query's row, for each query of each head.
extern "C" __global__ void __launch_bounds__(THREADS)
flash_delta(const float* __restrict__ g, const float* __restrict__ o, float* __restrict__ delta, int heads, int queries,
            i64 rows, Strides gs, Strides os) {
  i64 item = (i64)blockIdx.x * THREADS + threadIdx.x;
  i64 row = item / CHUNKS;
  int chunk = (int)(item % CHUNKS);
  float s = 0;
  if (row < rows) {
    i64 head = row / queries, t = row % queries, b = head / heads, h = head % heads;
    Four x = *(const Four*)(g + b * gs.batch + h * gs.head + t * gs.row + chunk * 4);
    Four y = *(const Four*)(o + b * os.batch + h * os.head + t * os.row + chunk * 4);
    #pragma unroll
    for (int i = 0; i < 4; i++) s += x.v[i] * y.v[i];
  }
  #pragma unroll
  for (int w = CHUNKS / 2; w > 0; w >>= 1) s += __shfl_xor_sync(0xffffffffu, s, w);
  if (row < rows && chunk == 0) delta[row] = s;
}

#if EXACT

// The other side's tile, and a thread's columns of scores and chunks of columns of a result.
#define SIDE 32
#define COLUMNS (SIDE / ACROSS)
#define PARTS (D / 4 / ACROSS)
// That of the forward kernel, and a thread's columns in it.
#define WIDE 64

// Two lanes that differ in the lowest bit share a row, two that differ in the next share a column:
// then a load of 16 bytes takes two passes rather than four.
struct Place {
  int warp, x, y;
  __device__ __forceinline__ Place() {
    int lane = threadIdx.x & 31;
    warp = threadIdx.x >> 5;
    x = (lane & 1) | ((lane >> 1) & (ACROSS - 2));
    y = ((lane >> 1) & 1) | (DOWN == 4 ? (lane >> 4) << 1 : 0);
  }
  __device__ __forceinline__ int row(int i) const { return warp * WARP_ROWS + y + DOWN * i; }
};

// Over the lanes that share rows.
__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 4));
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 8));
  return ACROSS == 16 ? fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 16)) : x;
}
__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  x += __shfl_xor_sync(0xffffffffu, x, 4);
  x += __shfl_xor_sync(0xffffffffu, x, 8);
  return ACROSS == 16 ? x + __shfl_xor_sync(0xffffffffu, x, 16) : x;
}

// c = a b^T over D: rows of a by rows x + ACROSS j of b.
template <int N>
__device__ __forceinline__ void scores(float (*c)[N], const Four* a, const Four* b, const Place& at) {
  #pragma unroll
  for (int i = 0; i < 8; i++)
    #pragma unroll
    for (int j = 0; j < N; j++) c[i][j] = 0;
  #pragma unroll 2
  for (int d = 0; d < CHUNKS; d++) {
    Four x[8];
    #pragma unroll
    for (int i = 0; i < 8; i++) x[i] = a[swizzled(at.row(i), d)];
    #pragma unroll
    for (int j = 0; j < N; j++) {
      Four y = b[swizzled(at.x + ACROSS * j, d)];
      #pragma unroll
      for (int e = 0; e < 4; e++)
        #pragma unroll
        for (int i = 0; i < 8; i++) c[i][j] += x[i].v[e] * y.v[e];
    }
  }
}

// The place of 4 elements of a tile of scores with rows of K, and of one.
template <int K>
__device__ __forceinline__ int score_chunk(int row, int chunk) {
  return row * (K / 4) + (chunk ^ ((row & (DOWN - 1)) * (ACROSS / 4)));
}
template <int K>
__device__ __forceinline__ float& score(Four* p, int row, int column) {
  return p[score_chunk<K>(row, column >> 2)].v[column & 3];
}

// c += p b over K rows of b: chunks x + ACROSS n of columns.
template <int K>
__device__ __forceinline__ void mix(float (*c)[PARTS * 4], const Four* p, const Four* b, const Place& at) {
  #pragma unroll 1
  for (int k = 0; k < K / 4; k++) {
    Four x[8];
    #pragma unroll
    for (int i = 0; i < 8; i++) x[i] = p[score_chunk<K>(at.row(i), k)];
    #pragma unroll
    for (int e = 0; e < 4; e++)
      #pragma unroll
      for (int n = 0; n < PARTS; n++) {
        Four y = b[swizzled(k * 4 + e, at.x + ACROSS * n)];
        #pragma unroll
        for (int f = 0; f < 4; f++)
          #pragma unroll
          for (int i = 0; i < 8; i++) c[i][n * 4 + f] += x[i].v[e] * y.v[f];
      }
  }
}

__device__ __forceinline__ void clear(float (*c)[PARTS * 4]) {
  #pragma unroll
  for (int i = 0; i < 8; i++)
    #pragma unroll
    for (int n = 0; n < PARTS * 4; n++) c[i][n] = 0;
}

__device__ __forceinline__ void store(const float* c, float factor, float* to, i64 pitch, int row, int rows,
                                      const Place& at) {
  if (row >= rows) return;
  #pragma unroll
  for (int n = 0; n < PARTS; n++) {
    Four x;
    #pragma unroll
    for (int f = 0; f < 4; f++) x.v[f] = c[n * 4 + f] * factor;
    *(Four*)(to + (i64)row * pitch + (at.x + ACROSS * n) * 4) = x;
  }
}

extern "C" __global__ void __launch_bounds__(THREADS, D <= 64 ? 2 : 1)
flash_forward(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
              float* __restrict__ o, float* __restrict__ lse, int batch, int heads, int queries, int keys, float scale,
              int causal, Strides qs, Strides ks, Strides vs, Strides os) {
  extern __shared__ __align__(128) char memory[];
  const int N = WIDE / ACROSS;
  i64 b, h;
  int tile;
  whose(batch * heads, heads, (queries + TILE - 1) / TILE, true, b, h, tile);
  Place at;
  int first = tile * TILE, mine = first + at.warp * WARP_ROWS;
  q += b * qs.batch + h * qs.head;
  k += b * ks.batch + h * ks.head;
  v += b * vs.batch + h * vs.head;
  Four* tile_q = (Four*)memory;
  Four* tile_k = tile_q + TILE * CHUNKS;
  Four* tile_v = tile_k + WIDE * CHUNKS;
  Four* tile_p = tile_v + WIDE * CHUNKS;
  int tiles = (keys + WIDE - 1) / WIDE;
  if (causal) tiles = min(tiles, (first + TILE + WIDE - 1) / WIDE);
  fetch<TILE>(tile_q, q, qs.row, first, queries);
  fetch<WIDE>(tile_k, k, ks.row, 0, keys);
  fetched();
  float acc[8][PARTS * 4], top[8], sum[8];
  clear(acc);
  #pragma unroll
  for (int i = 0; i < 8; i++) {
    top[i] = -INF_F;
    sum[i] = 0;
  }
  float factor = scale * LOG2E;
  for (int j = 0; j < tiles; j++) {
    bool seen = !causal || j * WIDE < mine + WARP_ROWS;
    await<0>();
    __syncthreads();
    // The keys are here, and the last values are done with.
    fetch<WIDE>(tile_v, v, vs.row, j * WIDE, keys);
    fetched();
    if (seen) {
      float s[8][N];
      scores<N>(s, tile_q, tile_k, at);
      bool edge = j * WIDE + WIDE > keys || (causal && j * WIDE + WIDE - 1 > mine);
      #pragma unroll
      for (int i = 0; i < 8; i++) {
        if (edge) {
          #pragma unroll
          for (int n = 0; n < N; n++) {
            int c = j * WIDE + at.x + ACROSS * n;
            if (c >= keys || (causal && c > first + at.row(i))) s[i][n] = -INF_F;
          }
        }
        float m = top[i];
        #pragma unroll
        for (int n = 0; n < N; n++) m = fmaxf(m, s[i][n]);
        m = row_max(m);
        float base = m == -INF_F ? 0 : m * factor;
        float shrink = exp2_of(top[i] * factor - base);
        top[i] = m;
        sum[i] *= shrink;
        #pragma unroll
        for (int n = 0; n < N; n++) {
          float x = exp2_of(s[i][n] * factor - base);
          sum[i] += x;
          score<WIDE>(tile_p, at.row(i), at.x + ACROSS * n) = x;
        }
        #pragma unroll
        for (int n = 0; n < PARTS * 4; n++) acc[i][n] *= shrink;
      }
    }
    await<0>();
    __syncthreads();
    // The values are here, and the keys are done with.
    if (j + 1 < tiles) fetch<WIDE>(tile_k, k, ks.row, (j + 1) * WIDE, keys);
    fetched();
    if (seen) mix<WIDE>(acc, tile_p, tile_v, at);
  }
  o += b * os.batch + h * os.head;
  #pragma unroll
  for (int i = 0; i < 8; i++) {
    float total = row_sum(sum[i]);
    int row = first + at.row(i);
    if (at.x == 0 && row < queries) lse[(b * heads + h) * queries + row] = top[i] * scale + logf(total);
    store(acc[i], 1.0f / total, o, os.row, row, queries, at);
  }
}

// dq: a block has queries and walks over keys.
extern "C" __global__ void __launch_bounds__(THREADS, D <= 64 ? 2 : 1)
flash_backward_queries(const float* __restrict__ g, const float* __restrict__ q, const float* __restrict__ k,
                       const float* __restrict__ v, const float* __restrict__ lse, const float* __restrict__ delta,
                       float* __restrict__ dq, int batch, int heads, int queries, int keys, float scale, int causal,
                       Strides gs, Strides qs, Strides ks, Strides vs, Strides os) {
  extern __shared__ __align__(128) char memory[];
  i64 b, h;
  int tile;
  whose(batch * heads, heads, (queries + TILE - 1) / TILE, true, b, h, tile);
  Place at;
  int first = tile * TILE, mine = first + at.warp * WARP_ROWS;
  g += b * gs.batch + h * gs.head;
  q += b * qs.batch + h * qs.head;
  k += b * ks.batch + h * ks.head;
  v += b * vs.batch + h * vs.head;
  Four* tile_q = (Four*)memory;
  Four* tile_g = tile_q + TILE * CHUNKS;
  Four* tile_k = tile_g + TILE * CHUNKS;
  Four* tile_v = tile_k + 2 * SIDE * CHUNKS;
  Four* tile_p = tile_v + 2 * SIDE * CHUNKS;
  int tiles = (keys + SIDE - 1) / SIDE;
  if (causal) tiles = min(tiles, (first + TILE + SIDE - 1) / SIDE);
  fetch<TILE>(tile_q, q, qs.row, first, queries);
  fetch<TILE>(tile_g, g, gs.row, first, queries);
  fetch<SIDE>(tile_k, k, ks.row, 0, keys);
  fetch<SIDE>(tile_v, v, vs.row, 0, keys);
  fetched();
  float factor = scale * LOG2E;
  float low[8], mean[8];
  #pragma unroll
  for (int i = 0; i < 8; i++) {
    int row = first + at.row(i);
    i64 place = (b * heads + h) * queries + row;
    low[i] = row < queries ? lse[place] * LOG2E : INF_F;
    mean[i] = row < queries ? delta[place] : 0;
  }
  float acc[8][PARTS * 4];
  clear(acc);
  for (int j = 0; j < tiles; j++) {
    const Four* kt = tile_k + (j & 1) * SIDE * CHUNKS;
    const Four* vt = tile_v + (j & 1) * SIDE * CHUNKS;
    await<0>();
    __syncthreads();
    if (j + 1 < tiles) {
      fetch<SIDE>(tile_k + ((j + 1) & 1) * SIDE * CHUNKS, k, ks.row, (j + 1) * SIDE, keys);
      fetch<SIDE>(tile_v + ((j + 1) & 1) * SIDE * CHUNKS, v, vs.row, (j + 1) * SIDE, keys);
      fetched();
    }
    if (causal && j * SIDE >= mine + WARP_ROWS) continue;
    float s[8][COLUMNS], p[8][COLUMNS];
    scores<COLUMNS>(s, tile_q, kt, at);
    scores<COLUMNS>(p, tile_g, vt, at);
    bool edge = j * SIDE + SIDE > keys || (causal && j * SIDE + SIDE - 1 > mine);
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < 8; i++)
      #pragma unroll
      for (int n = 0; n < COLUMNS; n++) {
        float x = exp2_of(s[i][n] * factor - low[i]);
        int c = j * SIDE + at.x + ACROSS * n;
        if (edge && (c >= keys || (causal && c > first + at.row(i)))) x = 0;
        score<SIDE>(tile_p, at.row(i), at.x + ACROSS * n) = x * (p[i][n] - mean[i]);
      }
    __syncwarp();
    mix<SIDE>(acc, tile_p, kt, at);
  }
  dq += b * os.batch + h * os.head;
  #pragma unroll
  for (int i = 0; i < 8; i++) store(acc[i], scale, dq, os.row, first + at.row(i), queries, at);
}

// dk and dv: a block has keys and walks over queries.
extern "C" __global__ void __launch_bounds__(THREADS, D <= 64 ? 2 : 1)
flash_backward_keys(const float* __restrict__ g, const float* __restrict__ q, const float* __restrict__ k,
                    const float* __restrict__ v, const float* __restrict__ lse, const float* __restrict__ delta,
                    float* __restrict__ dk, float* __restrict__ dv, int batch, int heads, int queries, int keys,
                    float scale, int causal, Strides gs, Strides qs, Strides ks, Strides vs, Strides os) {
  extern __shared__ __align__(128) char memory[];
  i64 b, h;
  int tile;
  whose(batch * heads, heads, (keys + TILE - 1) / TILE, false, b, h, tile);
  Place at;
  int first = tile * TILE, mine = first + at.warp * WARP_ROWS;
  g += b * gs.batch + h * gs.head;
  q += b * qs.batch + h * qs.head;
  k += b * ks.batch + h * ks.head;
  v += b * vs.batch + h * vs.head;
  lse += (b * heads + h) * queries;
  delta += (b * heads + h) * queries;
  Four* tile_k = (Four*)memory;
  Four* tile_v = tile_k + TILE * CHUNKS;
  Four* tile_q = tile_v + TILE * CHUNKS;
  Four* tile_g = tile_q + 2 * SIDE * CHUNKS;
  Four* tile_p = tile_g + 2 * SIDE * CHUNKS;
  float* rows = (float*)(tile_p + TILE * SIDE / 4);  // two stages of lse and delta
  int tiles = (queries + SIDE - 1) / SIDE;
  // Queries before the first key of this block see none of its keys.
  int j = causal ? first / SIDE : 0;
  fetch<TILE>(tile_k, k, ks.row, first, keys);
  fetch<TILE>(tile_v, v, vs.row, first, keys);
  if (j < tiles) {
    fetch<SIDE>(tile_q + (j & 1) * SIDE * CHUNKS, q, qs.row, j * SIDE, queries);
    fetch<SIDE>(tile_g + (j & 1) * SIDE * CHUNKS, g, gs.row, j * SIDE, queries);
  }
  fetched();
  float factor = scale * LOG2E;
  float acc_k[8][PARTS * 4], acc_v[8][PARTS * 4];
  clear(acc_k);
  clear(acc_v);
  for (; j < tiles; j++) {
    const Four* qt = tile_q + (j & 1) * SIDE * CHUNKS;
    const Four* gt = tile_g + (j & 1) * SIDE * CHUNKS;
    float* low = rows + (j & 1) * 2 * SIDE;
    float* mean = low + SIDE;
    if (threadIdx.x < SIDE) {
      int r = j * SIDE + threadIdx.x;
      low[threadIdx.x] = r < queries ? lse[r] * LOG2E : INF_F;
      mean[threadIdx.x] = r < queries ? delta[r] : 0;
    }
    await<0>();
    __syncthreads();
    if (j + 1 < tiles) {
      fetch<SIDE>(tile_q + ((j + 1) & 1) * SIDE * CHUNKS, q, qs.row, (j + 1) * SIDE, queries);
      fetch<SIDE>(tile_g + ((j + 1) & 1) * SIDE * CHUNKS, g, gs.row, (j + 1) * SIDE, queries);
      fetched();
    }
    if (causal && j * SIDE + SIDE - 1 < mine) continue;
    bool edge = causal && j * SIDE < mine + WARP_ROWS - 1;
    float s[8][COLUMNS];
    scores<COLUMNS>(s, tile_k, qt, at);
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < 8; i++)
      #pragma unroll
      for (int n = 0; n < COLUMNS; n++) {
        int c = at.x + ACROSS * n;
        float x = exp2_of(s[i][n] * factor - low[c]);
        if (edge && first + at.row(i) > j * SIDE + c) x = 0;
        score<SIDE>(tile_p, at.row(i), c) = x;
      }
    __syncwarp();
    mix<SIDE>(acc_v, tile_p, gt, at);
    scores<COLUMNS>(s, tile_v, gt, at);
    __syncwarp();
    // In place: registers are short.
    #pragma unroll
    for (int i = 0; i < 8; i++)
      #pragma unroll
      for (int n = 0; n < COLUMNS; n++) {
        int c = at.x + ACROSS * n;
        score<SIDE>(tile_p, at.row(i), c) *= s[i][n] - mean[c];
      }
    __syncwarp();
    mix<SIDE>(acc_k, tile_p, qt, at);
  }
  dk += b * os.batch + h * os.head;
  dv += b * os.batch + h * os.head;
  #pragma unroll
  for (int i = 0; i < 8; i++) {
    store(acc_k[i], scale, dk, os.row, first + at.row(i), keys, at);
    store(acc_v[i], 1, dv, os.row, first + at.row(i), keys, at);
  }
  await<0>();
}

#else

// The other side's tile.
#define SIDE 32

__device__ __forceinline__ u32 tf32(float x) {
  u32 r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
}
// 16 by 8 += 16 by 8 times 8 by 8.
__device__ __forceinline__ void multiply(float* c, const u32* a, u32 b0, u32 b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
struct alignas(16) Bits { u32 v[4]; };

// Rounds what this thread has fetched of a tile, in place.
template <int ROWS>
__device__ __forceinline__ void round(Four* tile) {
  #pragma unroll
  for (int c = threadIdx.x; c < ROWS * CHUNKS; c += THREADS) {
    Four* at = tile + swizzled(c / CHUNKS, c % CHUNKS);
    Four x = *at;
    Bits r;
    #pragma unroll
    for (int i = 0; i < 4; i++) r.v[i] = tf32(x.v[i]);
    *(Bits*)at = r;
  }
}

__device__ __forceinline__ Bits bits(const Four* tile, int row, int chunk) {
  return *(const Bits*)(tile + swizzled(row, chunk));
}

// A product may take its inner index in any order: elements 4 t to 4 t + 3 of 16 are slots t and t + 4
// of a first step and of a second, so that a thread's are one load.
__device__ __forceinline__ void left(u32 (*a)[4], const Four* tile, int row, int step, int lane) {
  Bits x = bits(tile, row + (lane >> 2), step * 4 + (lane & 3)), y = bits(tile, row + 8 + (lane >> 2), step * 4 + (lane & 3));
  #pragma unroll
  for (int i = 0; i < 2; i++) {
    a[i][0] = x.v[2 * i];
    a[i][1] = y.v[2 * i];
    a[i][2] = x.v[2 * i + 1];
    a[i][3] = y.v[2 * i + 1];
  }
}
// Columns of c are rows of the tile.
__device__ __forceinline__ void multiply_rows(float* c, u32 (*a)[4], const Four* tile, int row, int step, int lane) {
  Bits z = bits(tile, row + (lane >> 2), step * 4 + (lane & 3));
  multiply(c, a[0], z.v[0], z.v[1]);
  multiply(c, a[1], z.v[2], z.v[3]);
}
// c += p times 8 rows of the tile. Columns 2 t and 2 t + 1 of p, which a thread has, are slots t and
// t + 4; column g of part n of c is element 32 (n / 4) + 4 g + n % 4 of a row.
__device__ __forceinline__ void mix(float (*c)[4], const float* p, const Four* tile, int row, int lane) {
  u32 a[4] = {tf32(p[0]), tf32(p[2]), tf32(p[1]), tf32(p[3])};
  #pragma unroll
  for (int m = 0; m < D / 32; m++) {
    Bits x = bits(tile, row + 2 * (lane & 3), m * 8 + (lane >> 2)), y = bits(tile, row + 2 * (lane & 3) + 1, m * 8 + (lane >> 2));
    #pragma unroll
    for (int n = 0; n < 4; n++) multiply(c[m * 4 + n], a, x.v[n], y.v[n]);
  }
}

// Rows row and row + 8 of a result, of which a thread has 8 elements of every 32.
__device__ __forceinline__ void store(float (*c)[4], float f0, float f1, float* to, i64 pitch, int row, int rows, int lane) {
  #pragma unroll
  for (int r = 0; r < 2; r++) {
    if (row + r * 8 >= rows) continue;
    #pragma unroll
    for (int m = 0; m < D / 32; m++)
      #pragma unroll
      for (int e = 0; e < 2; e++) {
        Four x;
        #pragma unroll
        for (int n = 0; n < 4; n++) x.v[n] = c[m * 4 + n][r * 2 + e] * (r == 0 ? f0 : f1);
        *(Four*)(to + (i64)(row + r * 8) * pitch + m * 32 + (lane & 3) * 8 + e * 4) = x;
      }
  }
}

template <int N> __device__ __forceinline__ void clear(float (*c)[4]) {
  #pragma unroll
  for (int n = 0; n < N; n++)
    #pragma unroll
    for (int i = 0; i < 4; i++) c[n][i] = 0;
}

extern "C" __global__ void __launch_bounds__(THREADS, D <= 64 ? 3 : 1)
flash_forward(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
              float* __restrict__ o, float* __restrict__ lse, int batch, int heads, int queries, int keys, float scale,
              int causal, Strides qs, Strides ks, Strides vs, Strides os) {
  extern __shared__ __align__(128) char memory[];
  i64 b, h;
  int tile;
  whose(batch * heads, heads, (queries + TILE - 1) / TILE, true, b, h, tile);
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  int first = tile * TILE, mine = first + warp * 16;
  q += b * qs.batch + h * qs.head;
  k += b * ks.batch + h * ks.head;
  v += b * vs.batch + h * vs.head;
  Four* tile_q = (Four*)memory;
  Four* tile_k = tile_q + TILE * CHUNKS;
  Four* tile_v = tile_k + 2 * SIDE * CHUNKS;
  int tiles = (keys + SIDE - 1) / SIDE;
  if (causal) tiles = min(tiles, (first + TILE + SIDE - 1) / SIDE);
  fetch<TILE>(tile_q, q, qs.row, first, queries);
  fetch<SIDE>(tile_k, k, ks.row, 0, keys);
  fetch<SIDE>(tile_v, v, vs.row, 0, keys);
  fetched();
  float acc[D / 8][4];
  clear<D / 8>(acc);
  float top[2] = {-INF_F, -INF_F}, sum[2] = {0, 0};
  float factor = scale * LOG2E;
  u32 a[D / 8][4];
  for (int j = 0; j < tiles; j++) {
    Four* kt = tile_k + (j & 1) * SIDE * CHUNKS;
    Four* vt = tile_v + (j & 1) * SIDE * CHUNKS;
    await<0>();
    if (j == 0) round<TILE>(tile_q);
    round<SIDE>(kt);
    round<SIDE>(vt);
    __syncthreads();
    if (j + 1 < tiles) {
      fetch<SIDE>(tile_k + ((j + 1) & 1) * SIDE * CHUNKS, k, ks.row, (j + 1) * SIDE, keys);
      fetch<SIDE>(tile_v + ((j + 1) & 1) * SIDE * CHUNKS, v, vs.row, (j + 1) * SIDE, keys);
      fetched();
    }
    if (j == 0) {
      #pragma unroll
      for (int step = 0; step < D / 16; step++) left(a + 2 * step, tile_q, warp * 16, step, lane);
    }
    if (causal && j * SIDE > mine + 15) continue;
    float s[SIDE / 8][4];
    clear<SIDE / 8>(s);
    #pragma unroll
    for (int step = 0; step < D / 16; step++)
      #pragma unroll
      for (int n = 0; n < SIDE / 8; n++) multiply_rows(s[n], a + 2 * step, kt, n * 8, step, lane);
    if (j * SIDE + SIDE > keys || (causal && j * SIDE + SIDE - 1 > mine)) {
      #pragma unroll
      for (int n = 0; n < SIDE / 8; n++)
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          int c = j * SIDE + n * 8 + 2 * (lane & 3) + (i & 1), r = mine + (lane >> 2) + (i >> 1) * 8;
          if (c >= keys || (causal && c > r)) s[n][i] = -INF_F;
        }
    }
    #pragma unroll
    for (int r = 0; r < 2; r++) {
      float m = top[r];
      #pragma unroll
      for (int n = 0; n < SIDE / 8; n++) m = fmaxf(m, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
      m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 1));
      m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 2));
      float base = m == -INF_F ? 0 : m * factor;
      float shrink = exp2_of(top[r] * factor - base);
      top[r] = m;
      float part = 0;
      #pragma unroll
      for (int n = 0; n < SIDE / 8; n++) {
        s[n][2 * r] = exp2_of(s[n][2 * r] * factor - base);
        s[n][2 * r + 1] = exp2_of(s[n][2 * r + 1] * factor - base);
        part += s[n][2 * r] + s[n][2 * r + 1];
      }
      sum[r] = sum[r] * shrink + part;
      #pragma unroll
      for (int n = 0; n < D / 8; n++) {
        acc[n][2 * r] *= shrink;
        acc[n][2 * r + 1] *= shrink;
      }
    }
    #pragma unroll
    for (int n = 0; n < SIDE / 8; n++) mix(acc, s[n], vt, n * 8, lane);
  }
  #pragma unroll
  for (int r = 0; r < 2; r++) {
    sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
    sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
    int row = mine + (lane >> 2) + r * 8;
    if ((lane & 3) == 0 && row < queries) lse[(b * heads + h) * queries + row] = top[r] * scale + logf(sum[r]);
  }
  store(acc, 1.0f / sum[0], 1.0f / sum[1], o + b * os.batch + h * os.head, os.row, mine + (lane >> 2), queries, lane);
}

// dq: 16 queries a warp, walking over keys.
extern "C" __global__ void __launch_bounds__(THREADS, D <= 64 ? 3 : 1)
flash_backward_queries(const float* __restrict__ g, const float* __restrict__ q, const float* __restrict__ k,
                       const float* __restrict__ v, const float* __restrict__ lse, const float* __restrict__ delta,
                       float* __restrict__ dq, int batch, int heads, int queries, int keys, float scale, int causal,
                       Strides gs, Strides qs, Strides ks, Strides vs, Strides os) {
  extern __shared__ __align__(128) char memory[];
  i64 b, h;
  int tile;
  whose(batch * heads, heads, (queries + TILE - 1) / TILE, true, b, h, tile);
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  int first = tile * TILE, mine = first + warp * 16;
  g += b * gs.batch + h * gs.head;
  q += b * qs.batch + h * qs.head;
  k += b * ks.batch + h * ks.head;
  v += b * vs.batch + h * vs.head;
  Four* tile_q = (Four*)memory;
  Four* tile_g = tile_q + TILE * CHUNKS;
  Four* tile_k = tile_g + TILE * CHUNKS;
  Four* tile_v = tile_k + 2 * SIDE * CHUNKS;
  int tiles = (keys + SIDE - 1) / SIDE;
  if (causal) tiles = min(tiles, (first + TILE + SIDE - 1) / SIDE);
  fetch<TILE>(tile_q, q, qs.row, first, queries);
  fetch<TILE>(tile_g, g, gs.row, first, queries);
  fetch<SIDE>(tile_k, k, ks.row, 0, keys);
  fetch<SIDE>(tile_v, v, vs.row, 0, keys);
  fetched();
  float factor = scale * LOG2E;
  float low[2], mean[2];
  #pragma unroll
  for (int r = 0; r < 2; r++) {
    int row = mine + (lane >> 2) + r * 8;
    i64 at = (b * heads + h) * queries + row;
    low[r] = row < queries ? lse[at] * LOG2E : INF_F;
    mean[r] = row < queries ? delta[at] : 0;
  }
  float acc[D / 8][4];
  clear<D / 8>(acc);
  const bool held = D <= 64;
  u32 a[held ? D / 8 : 2][4], e[held ? D / 8 : 2][4];
  for (int j = 0; j < tiles; j++) {
    Four* kt = tile_k + (j & 1) * SIDE * CHUNKS;
    Four* vt = tile_v + (j & 1) * SIDE * CHUNKS;
    await<0>();
    if (j == 0) {
      round<TILE>(tile_q);
      round<TILE>(tile_g);
    }
    round<SIDE>(kt);
    round<SIDE>(vt);
    __syncthreads();
    if (j + 1 < tiles) {
      fetch<SIDE>(tile_k + ((j + 1) & 1) * SIDE * CHUNKS, k, ks.row, (j + 1) * SIDE, keys);
      fetch<SIDE>(tile_v + ((j + 1) & 1) * SIDE * CHUNKS, v, vs.row, (j + 1) * SIDE, keys);
      fetched();
    }
    if (held && j == 0) {
      #pragma unroll
      for (int step = 0; step < D / 16; step++) {
        left(a + (held ? 2 * step : 0), tile_q, warp * 16, step, lane);
        left(e + (held ? 2 * step : 0), tile_g, warp * 16, step, lane);
      }
    }
    if (causal && j * SIDE > mine + 15) continue;
    float s[SIDE / 8][4], p[SIDE / 8][4];
    clear<SIDE / 8>(s);
    clear<SIDE / 8>(p);
    #pragma unroll
    for (int step = 0; step < D / 16; step++) {
      if (!held) {
        left(a, tile_q, warp * 16, step, lane);
        left(e, tile_g, warp * 16, step, lane);
      }
      #pragma unroll
      for (int n = 0; n < SIDE / 8; n++) {
        multiply_rows(s[n], a + (held ? 2 * step : 0), kt, n * 8, step, lane);
        multiply_rows(p[n], e + (held ? 2 * step : 0), vt, n * 8, step, lane);
      }
    }
    bool edge = j * SIDE + SIDE > keys || (causal && j * SIDE + SIDE - 1 > mine);
    #pragma unroll
    for (int n = 0; n < SIDE / 8; n++) {
      #pragma unroll
      for (int i = 0; i < 4; i++) {
        float x = exp2_of(s[n][i] * factor - low[i >> 1]);
        if (edge) {
          int c = j * SIDE + n * 8 + 2 * (lane & 3) + (i & 1), r = mine + (lane >> 2) + (i >> 1) * 8;
          if (c >= keys || (causal && c > r)) x = 0;
        }
        s[n][i] = x * (p[n][i] - mean[i >> 1]);
      }
      mix(acc, s[n], kt, n * 8, lane);
    }
  }
  store(acc, scale, scale, dq + b * os.batch + h * os.head, os.row, mine + (lane >> 2), queries, lane);
}

// dk and dv: 16 keys a warp, walking over queries.
extern "C" __global__ void __launch_bounds__(THREADS, D <= 64 ? 3 : 1)
flash_backward_keys(const float* __restrict__ g, const float* __restrict__ q, const float* __restrict__ k,
                    const float* __restrict__ v, const float* __restrict__ lse, const float* __restrict__ delta,
                    float* __restrict__ dk, float* __restrict__ dv, int batch, int heads, int queries, int keys,
                    float scale, int causal, Strides gs, Strides qs, Strides ks, Strides vs, Strides os) {
  extern __shared__ __align__(128) char memory[];
  i64 b, h;
  int tile;
  whose(batch * heads, heads, (keys + TILE - 1) / TILE, false, b, h, tile);
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  int first = tile * TILE, mine = first + warp * 16;
  g += b * gs.batch + h * gs.head;
  q += b * qs.batch + h * qs.head;
  k += b * ks.batch + h * ks.head;
  v += b * vs.batch + h * vs.head;
  lse += (b * heads + h) * queries;
  delta += (b * heads + h) * queries;
  Four* tile_k = (Four*)memory;
  Four* tile_v = tile_k + TILE * CHUNKS;
  Four* tile_q = tile_v + TILE * CHUNKS;
  Four* tile_g = tile_q + 2 * SIDE * CHUNKS;
  float* rows = (float*)(tile_g + 2 * SIDE * CHUNKS);  // two stages of lse and delta
  int tiles = (queries + SIDE - 1) / SIDE;
  // Queries before the first key of this block see none of its keys.
  int j = causal ? first / SIDE : 0;
  float acc_k[D / 8][4], acc_v[D / 8][4];
  clear<D / 8>(acc_k);
  clear<D / 8>(acc_v);
  fetch<TILE>(tile_k, k, ks.row, first, keys);
  fetch<TILE>(tile_v, v, vs.row, first, keys);
  if (j < tiles) {
    fetch<SIDE>(tile_q + (j & 1) * SIDE * CHUNKS, q, qs.row, j * SIDE, queries);
    fetch<SIDE>(tile_g + (j & 1) * SIDE * CHUNKS, g, gs.row, j * SIDE, queries);
  }
  fetched();
  float factor = scale * LOG2E;
  for (int start = j; j < tiles; j++) {
    Four* qt = tile_q + (j & 1) * SIDE * CHUNKS;
    Four* gt = tile_g + (j & 1) * SIDE * CHUNKS;
    float* low = rows + (j & 1) * 2 * SIDE;
    float* mean = low + SIDE;
    if (threadIdx.x < SIDE) {
      int r = j * SIDE + threadIdx.x;
      low[threadIdx.x] = r < queries ? lse[r] * LOG2E : INF_F;
      mean[threadIdx.x] = r < queries ? delta[r] : 0;
    }
    await<0>();
    if (j == start) {
      round<TILE>(tile_k);
      round<TILE>(tile_v);
    }
    round<SIDE>(qt);
    round<SIDE>(gt);
    __syncthreads();
    if (j + 1 < tiles) {
      fetch<SIDE>(tile_q + ((j + 1) & 1) * SIDE * CHUNKS, q, qs.row, (j + 1) * SIDE, queries);
      fetch<SIDE>(tile_g + ((j + 1) & 1) * SIDE * CHUNKS, g, gs.row, (j + 1) * SIDE, queries);
      fetched();
    }
    if (causal && j * SIDE + SIDE - 1 < mine) continue;
    bool edge = causal && j * SIDE < mine + 15;
    float s[SIDE / 8][4], p[SIDE / 8][4];
    clear<SIDE / 8>(s);
    clear<SIDE / 8>(p);
    #pragma unroll
    for (int step = 0; step < D / 16; step++) {
      u32 a[2][4], e[2][4];
      left(a, tile_k, warp * 16, step, lane);
      left(e, tile_v, warp * 16, step, lane);
      #pragma unroll
      for (int n = 0; n < SIDE / 8; n++) {
        multiply_rows(s[n], a, qt, n * 8, step, lane);
        multiply_rows(p[n], e, gt, n * 8, step, lane);
      }
    }
    #pragma unroll
    for (int n = 0; n < SIDE / 8; n++) {
      int c = n * 8 + 2 * (lane & 3);
      #pragma unroll
      for (int i = 0; i < 4; i++) {
        float x = exp2_of(s[n][i] * factor - low[c + (i & 1)]);
        if (edge && mine + (lane >> 2) + (i >> 1) * 8 > j * SIDE + c + (i & 1)) x = 0;
        s[n][i] = x;
        p[n][i] = x * (p[n][i] - mean[c + (i & 1)]);
      }
      mix(acc_v, s[n], gt, n * 8, lane);
      mix(acc_k, p[n], qt, n * 8, lane);
    }
  }
  await<0>();
  store(acc_k, scale, scale, dk + b * os.batch + h * os.head, os.row, mine + (lane >> 2), keys, lane);
  store(acc_v, 1, 1, dv + b * os.batch + h * os.head, os.row, mine + (lane >> 2), keys, lane);
}

#endif
