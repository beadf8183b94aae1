// Scaled dot-product attention without the matrix of scores, on tensor cores: T is f16 or bf16, D the
// head size, 32, 64 or 128. Forward: a warp has 16 queries and walks over tiles of keys with a running
// maximum and sum (Milakov and Gimelshein, arXiv:1805.02867; Dao et al., arXiv:2205.14135). Backward
// in two kernels, each of which sums in a fixed order: one has 16 keys a warp and walks over queries,
// the other 16 queries a warp and walks over keys. Strides count elements; rows are dense and lie at
// multiples of 16 bytes.
#define WARPS 4
#define THREADS (32 * WARPS)
#define TILE (16 * WARPS)
// The other side's tile, smaller where registers are short.
#define SIDE (D <= 64 ? 64 : 32)
#define CHUNKS (D / 8)
#define LOG2E 1.4426950408889634f
#define LN2 0.6931471805599453f

struct Strides { i64 batch, head, row; };

template <typename X> struct Mma;
template <> struct Mma<bf16> {
  static __device__ __forceinline__ void run(float* c, const u32* a, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
  // low in the lower half.
  static __device__ __forceinline__ u32 pack(float low, float high) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
  }
};
template <> struct Mma<f16> {
  static __device__ __forceinline__ void run(float* c, const u32* a, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
  static __device__ __forceinline__ u32 pack(float low, float high) {
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
  }
};
typedef Mma<T> M;

__device__ __forceinline__ float exp2_of(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The place in bytes of 8 elements of a row of a tile: eight rows at one place of theirs lie in
// different banks.
__device__ __forceinline__ u32 swizzled(int row, int chunk) {
  if (D == 32) return row * 64 + ((chunk ^ ((row >> 1) & 3)) << 4);
  return row * (D * 2) + (((chunk & ~7) | ((chunk ^ row) & 7)) << 4);
}

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void load4(u32* r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address) : "memory");
}
__device__ __forceinline__ void load4_transposed(u32* r, u32 address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address) : "memory");
}

// 16 rows by 16 columns as the left factor.
__device__ __forceinline__ void left(u32* r, u32 tile, int row, int step, int lane) {
  load4(r, tile + swizzled(row + (lane & 15), step * 2 + (lane >> 4)));
}
// 16 rows by 16 columns, the rows being the result's columns: r[0], r[1] for the first 8 rows.
__device__ __forceinline__ void right_by_rows(u32* r, u32 tile, int row, int step, int lane) {
  load4(r, tile + swizzled(row + (lane & 7) + ((lane >> 4) << 3), step * 2 + ((lane >> 3) & 1)));
}
// 16 rows by 16 columns, the columns being the result's: r[0], r[1] for the first 8 columns.
__device__ __forceinline__ void right_by_columns(u32* r, u32 tile, int row, int step, int lane) {
  load4_transposed(r, tile + swizzled(row + (lane & 7) + (((lane >> 3) & 1) << 3), step * 2 + (lane >> 4)));
}

// Begins to copy rows of a head into a tile; rows past the end are zeros.
template <int ROWS>
__device__ __forceinline__ void fetch(u32 tile, const T* from, i64 pitch, int row, int rows) {
  #pragma unroll
  for (int c = threadIdx.x; c < ROWS * CHUNKS; c += THREADS) {
    int r = c / CHUNKS, chunk = c % CHUNKS;
    bool there = row + r < rows;
    const T* source = from + (there ? (i64)(row + r) * pitch : 0) + chunk * 8;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(tile + swizzled(r, chunk)), "l"(source), "r"(there ? 16 : 0) : "memory");
  }
}
__device__ __forceinline__ void fetched() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void await() {
  asm volatile("cp.async.wait_group %0;" :: "n"(LEFT) : "memory");
}

// Writes a warp's 16 rows, held as results of products, by way of its part of a tile.
__device__ __forceinline__ void store(float (*c)[4], float f0, float f1, char* tile, T* to, i64 pitch, int row, int rows,
                                      int warp, int lane) {
  __syncwarp();
  #pragma unroll
  for (int n = 0; n < D / 8; n++) {
    *(u32*)(tile + swizzled(warp * 16 + (lane >> 2), n) + (lane & 3) * 4) = M::pack(c[n][0] * f0, c[n][1] * f0);
    *(u32*)(tile + swizzled(warp * 16 + (lane >> 2) + 8, n) + (lane & 3) * 4) = M::pack(c[n][2] * f1, c[n][3] * f1);
  }
  __syncwarp();
  #pragma unroll
  for (int i = lane; i < 16 * CHUNKS; i += 32) {
    int r = i / CHUNKS, chunk = i % CHUNKS;
    if (row + r < rows) {
      *(Vec<T, 8>*)(to + (i64)(row + r) * pitch + chunk * 8) = *(Vec<T, 8>*)(tile + swizzled(warp * 16 + r, chunk));
    }
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

extern "C" __global__ void __launch_bounds__(THREADS)
flash_forward(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, T* __restrict__ o,
              float* __restrict__ lse, int batch, int heads, int queries, int keys, float scale, int causal,
              Strides qs, Strides ks, Strides vs, Strides os) {
  extern __shared__ __align__(128) char memory[];
  i64 b, h;
  int tile;
  whose(batch * heads, heads, (queries + TILE - 1) / TILE, true, b, h, tile);
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  int first = tile * TILE, mine = first + warp * 16;
  q += b * qs.batch + h * qs.head;
  k += b * ks.batch + h * ks.head;
  v += b * vs.batch + h * vs.head;
  u32 tile_q = shared_address(memory), tile_k = tile_q + TILE * D * 2, tile_v = tile_k + 2 * 64 * D * 2;
  int tiles = (keys + 63) / 64;
  if (causal) tiles = min(tiles, (first + TILE + 63) / 64);
  fetch<TILE>(tile_q, q, qs.row, first, queries);
  fetch<64>(tile_k, k, ks.row, 0, keys);
  fetch<64>(tile_v, v, vs.row, 0, keys);
  fetched();
  float acc[D / 8][4];
  #pragma unroll
  for (int n = 0; n < D / 8; n++)
    #pragma unroll
    for (int i = 0; i < 4; i++) acc[n][i] = 0;
  float top[2] = {-INF_F, -INF_F}, sum[2] = {0, 0};
  float factor = scale * LOG2E;
  u32 a[D / 16][4];
  for (int j = 0; j < tiles; j++) {
    u32 kt = tile_k + (j & 1) * 64 * D * 2, vt = tile_v + (j & 1) * 64 * D * 2;
    if (j + 1 < tiles) {
      fetch<64>(tile_k + ((j + 1) & 1) * 64 * D * 2, k, ks.row, (j + 1) * 64, keys);
      fetch<64>(tile_v + ((j + 1) & 1) * 64 * D * 2, v, vs.row, (j + 1) * 64, keys);
      fetched();
      await<1>();
    } else {
      await<0>();
    }
    __syncthreads();
    if (j == 0) {
      #pragma unroll
      for (int s = 0; s < D / 16; s++) left(a[s], tile_q, warp * 16, s, lane);
    }
    float s[8][4];
    #pragma unroll
    for (int n = 0; n < 8; n++)
      #pragma unroll
      for (int i = 0; i < 4; i++) s[n][i] = 0;
    #pragma unroll
    for (int step = 0; step < D / 16; step++) {
      #pragma unroll
      for (int n = 0; n < 4; n++) {
        u32 r[4];
        right_by_rows(r, kt, n * 16, step, lane);
        M::run(s[2 * n], a[step], r[0], r[1]);
        M::run(s[2 * n + 1], a[step], r[2], r[3]);
      }
    }
    int column = j * 64 + 2 * (lane & 3), row = mine + (lane >> 2);
    if (j * 64 + 64 > keys || (causal && j * 64 + 63 > mine)) {
      #pragma unroll
      for (int n = 0; n < 8; n++)
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          int c = column + n * 8 + (i & 1), r = row + (i >> 1) * 8;
          if (c >= keys || (causal && c > r)) s[n][i] = -INF_F;
        }
    }
    #pragma unroll
    for (int r = 0; r < 2; r++) {
      float m = top[r];
      #pragma unroll
      for (int n = 0; n < 8; n++) m = fmaxf(m, fmaxf(s[n][2 * r], s[n][2 * r + 1]));
      m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 1));
      m = fmaxf(m, __shfl_xor_sync(0xffffffffu, m, 2));
      float base = m == -INF_F ? 0 : m * factor;
      float shrink = exp2_of(top[r] * factor - base);
      top[r] = m;
      float part = 0;
      #pragma unroll
      for (int n = 0; n < 8; n++) {
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
    for (int n = 0; n < 4; n++) {
      u32 p[4] = {M::pack(s[2 * n][0], s[2 * n][1]), M::pack(s[2 * n][2], s[2 * n][3]),
                  M::pack(s[2 * n + 1][0], s[2 * n + 1][1]), M::pack(s[2 * n + 1][2], s[2 * n + 1][3])};
      #pragma unroll
      for (int c = 0; c < D / 16; c++) {
        u32 r[4];
        right_by_columns(r, vt, n * 16, c, lane);
        M::run(acc[2 * c], p, r[0], r[1]);
        M::run(acc[2 * c + 1], p, r[2], r[3]);
      }
    }
    __syncthreads();
  }
  #pragma unroll
  for (int r = 0; r < 2; r++) {
    sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 1);
    sum[r] += __shfl_xor_sync(0xffffffffu, sum[r], 2);
    int row = mine + (lane >> 2) + r * 8;
    if ((lane & 3) == 0 && row < queries) {
      lse[(b * heads + h) * queries + row] = top[r] * scale + __logf(sum[r]);
    }
  }
  store(acc, 1.0f / sum[0], 1.0f / sum[1], memory, o + b * os.batch + h * os.head, os.row, mine, queries, warp, lane);
}

// delta = the sum of g o over a query's row, for each query of each head.
extern "C" __global__ void __launch_bounds__(THREADS)
flash_delta(const T* __restrict__ g, const T* __restrict__ o, float* __restrict__ delta, int heads, int queries,
            i64 rows, Strides gs, Strides os) {
  i64 item = (i64)blockIdx.x * THREADS + threadIdx.x;
  i64 row = item / CHUNKS;
  int chunk = (int)(item % CHUNKS);
  float s = 0;
  if (row < rows) {
    i64 head = row / queries, t = row % queries, b = head / heads, h = head % heads;
    Vec<T, 8> x = *(const Vec<T, 8>*)(g + b * gs.batch + h * gs.head + t * gs.row + chunk * 8);
    Vec<T, 8> y = *(const Vec<T, 8>*)(o + b * os.batch + h * os.head + t * os.row + chunk * 8);
    #pragma unroll
    for (int i = 0; i < 8; i++) s += up(x.v[i]) * up(y.v[i]);
  }
  #pragma unroll
  for (int w = CHUNKS / 2; w > 0; w >>= 1) s += __shfl_xor_sync(0xffffffffu, s, w);
  if (row < rows && chunk == 0) delta[row] = s;
}

// dq: 16 queries a warp, walking over keys.
extern "C" __global__ void __launch_bounds__(THREADS)
flash_backward_queries(const T* __restrict__ g, const T* __restrict__ q, const T* __restrict__ k,
                       const T* __restrict__ v, const float* __restrict__ lse, const float* __restrict__ delta,
                       T* __restrict__ dq, int batch, int heads, int queries, int keys, float scale, int causal,
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
  const int bytes = SIDE * D * 2;
  u32 tile_q = shared_address(memory), tile_g = tile_q + TILE * D * 2;
  u32 tile_k = tile_g + TILE * D * 2, tile_v = tile_k + 2 * bytes;
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
  #pragma unroll
  for (int n = 0; n < D / 8; n++)
    #pragma unroll
    for (int i = 0; i < 4; i++) acc[n][i] = 0;
  u32 a[D / 16][4], e[D / 16][4];
  for (int j = 0; j < tiles; j++) {
    u32 kt = tile_k + (j & 1) * bytes, vt = tile_v + (j & 1) * bytes;
    if (j + 1 < tiles) {
      fetch<SIDE>(tile_k + ((j + 1) & 1) * bytes, k, ks.row, (j + 1) * SIDE, keys);
      fetch<SIDE>(tile_v + ((j + 1) & 1) * bytes, v, vs.row, (j + 1) * SIDE, keys);
      fetched();
      await<1>();
    } else {
      await<0>();
    }
    __syncthreads();
    if (j == 0) {
      #pragma unroll
      for (int s = 0; s < D / 16; s++) {
        left(a[s], tile_q, warp * 16, s, lane);
        left(e[s], tile_g, warp * 16, s, lane);
      }
    }
    bool edge = j * SIDE + SIDE > keys || (causal && j * SIDE + SIDE - 1 > mine);
    #pragma unroll
    for (int n = 0; n < SIDE / 16; n++) {
      float s[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}}, p[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
      #pragma unroll
      for (int step = 0; step < D / 16; step++) {
        u32 r[4], w[4];
        right_by_rows(r, kt, n * 16, step, lane);
        right_by_rows(w, vt, n * 16, step, lane);
        M::run(s[0], a[step], r[0], r[1]);
        M::run(s[1], a[step], r[2], r[3]);
        M::run(p[0], e[step], w[0], w[1]);
        M::run(p[1], e[step], w[2], w[3]);
      }
      #pragma unroll
      for (int t = 0; t < 2; t++)
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          float x = exp2_of(s[t][i] * factor - low[i >> 1]);
          if (edge) {
            int c = j * SIDE + n * 16 + t * 8 + 2 * (lane & 3) + (i & 1), r = mine + (lane >> 2) + (i >> 1) * 8;
            if (c >= keys || (causal && c > r)) x = 0;
          }
          s[t][i] = x * (p[t][i] - mean[i >> 1]);
        }
      u32 d[4] = {M::pack(s[0][0], s[0][1]), M::pack(s[0][2], s[0][3]), M::pack(s[1][0], s[1][1]),
                  M::pack(s[1][2], s[1][3])};
      #pragma unroll
      for (int c = 0; c < D / 16; c++) {
        u32 r[4];
        right_by_columns(r, kt, n * 16, c, lane);
        M::run(acc[2 * c], d, r[0], r[1]);
        M::run(acc[2 * c + 1], d, r[2], r[3]);
      }
    }
    __syncthreads();
  }
  store(acc, scale, scale, memory, dq + b * os.batch + h * os.head, os.row, mine, queries, warp, lane);
}

// dk and dv: 16 keys a warp, walking over queries.
extern "C" __global__ void __launch_bounds__(THREADS)
flash_backward_keys(const T* __restrict__ g, const T* __restrict__ q, const T* __restrict__ k,
                    const T* __restrict__ v, const float* __restrict__ lse, const float* __restrict__ delta,
                    T* __restrict__ dk, T* __restrict__ dv, int batch, int heads, int queries, int keys, float scale,
                    int causal, Strides gs, Strides qs, Strides ks, Strides vs, Strides os) {
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
  const int bytes = SIDE * D * 2;
  u32 tile_k = shared_address(memory), tile_v = tile_k + TILE * D * 2;
  u32 tile_q = tile_v + TILE * D * 2, tile_g = tile_q + 2 * bytes;
  float* rows = (float*)(memory + 2 * TILE * D * 2 + 4 * bytes);  // two stages of lse and delta
  int tiles = (queries + SIDE - 1) / SIDE;
  // Queries before the first key of this block see none of its keys.
  int j = causal ? first / SIDE : 0;
  float acc_k[D / 8][4], acc_v[D / 8][4];
  #pragma unroll
  for (int n = 0; n < D / 8; n++)
    #pragma unroll
    for (int i = 0; i < 4; i++) acc_k[n][i] = acc_v[n][i] = 0;
  fetch<TILE>(tile_k, k, ks.row, first, keys);
  fetch<TILE>(tile_v, v, vs.row, first, keys);
  if (j < tiles) {
    fetch<SIDE>(tile_q + (j & 1) * bytes, q, qs.row, j * SIDE, queries);
    fetch<SIDE>(tile_g + (j & 1) * bytes, g, gs.row, j * SIDE, queries);
  }
  fetched();
  float factor = scale * LOG2E;
  const bool held = D <= 64;
  u32 a[held ? D / 16 : 1][4], e[held ? D / 16 : 1][4];
  for (int start = j; j < tiles; j++) {
    u32 qt = tile_q + (j & 1) * bytes, gt = tile_g + (j & 1) * bytes;
    float* low = rows + (j & 1) * 2 * SIDE;
    float* mean = low + SIDE;
    for (int i = threadIdx.x; i < SIDE; i += THREADS) {
      int r = j * SIDE + i;
      low[i] = r < queries ? lse[r] * LOG2E : INF_F;
      mean[i] = r < queries ? delta[r] : 0;
    }
    if (j + 1 < tiles) {
      fetch<SIDE>(tile_q + ((j + 1) & 1) * bytes, q, qs.row, (j + 1) * SIDE, queries);
      fetch<SIDE>(tile_g + ((j + 1) & 1) * bytes, g, gs.row, (j + 1) * SIDE, queries);
      fetched();
      await<1>();
    } else {
      await<0>();
    }
    __syncthreads();
    if (held && j == start) {
      #pragma unroll
      for (int s = 0; s < D / 16; s++) {
        left(a[held ? s : 0], tile_k, warp * 16, s, lane);
        left(e[held ? s : 0], tile_v, warp * 16, s, lane);
      }
    }
    bool edge = causal && j * SIDE < mine + 15;
    #pragma unroll
    for (int n = 0; n < SIDE / 16; n++) {
      float s[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}}, p[2][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}};
      #pragma unroll
      for (int step = 0; step < D / 16; step++) {
        u32 r[4], w[4];
        if (!held) {
          left(a[0], tile_k, warp * 16, step, lane);
          left(e[0], tile_v, warp * 16, step, lane);
        }
        right_by_rows(r, qt, n * 16, step, lane);
        right_by_rows(w, gt, n * 16, step, lane);
        M::run(s[0], a[held ? step : 0], r[0], r[1]);
        M::run(s[1], a[held ? step : 0], r[2], r[3]);
        M::run(p[0], e[held ? step : 0], w[0], w[1]);
        M::run(p[1], e[held ? step : 0], w[2], w[3]);
      }
      #pragma unroll
      for (int t = 0; t < 2; t++) {
        int c = n * 16 + t * 8 + 2 * (lane & 3);
        #pragma unroll
        for (int i = 0; i < 4; i++) {
          float x = exp2_of(s[t][i] * factor - low[c + (i & 1)]);
          if (edge && mine + (lane >> 2) + (i >> 1) * 8 > j * SIDE + c + (i & 1)) x = 0;
          s[t][i] = x;
          p[t][i] = x * (p[t][i] - mean[c + (i & 1)]);
        }
      }
      u32 x[4] = {M::pack(s[0][0], s[0][1]), M::pack(s[0][2], s[0][3]), M::pack(s[1][0], s[1][1]),
                  M::pack(s[1][2], s[1][3])};
      u32 d[4] = {M::pack(p[0][0], p[0][1]), M::pack(p[0][2], p[0][3]), M::pack(p[1][0], p[1][1]),
                  M::pack(p[1][2], p[1][3])};
      #pragma unroll
      for (int c = 0; c < D / 16; c++) {
        u32 r[4];
        right_by_columns(r, gt, n * 16, c, lane);
        M::run(acc_v[2 * c], x, r[0], r[1]);
        M::run(acc_v[2 * c + 1], x, r[2], r[3]);
        right_by_columns(r, qt, n * 16, c, lane);
        M::run(acc_k[2 * c], d, r[0], r[1]);
        M::run(acc_k[2 * c + 1], d, r[2], r[3]);
      }
    }
    __syncthreads();
  }
  await<0>();
  __syncthreads();
  store(acc_k, scale, scale, memory, dk + b * os.batch + h * os.head, os.row, mine, keys, warp, lane);
  store(acc_v, 1, 1, memory + TILE * D * 2, dv + b * os.batch + h * os.head, os.row, mine, keys, warp, lane);
}
