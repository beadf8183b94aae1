// Sorting along a dimension; TYPE is a type of common.cuh. Elements become unsigned keys in the
// order wanted, and are sorted by (key, position): equal ones keep their order. A row longer than
// CHUNK is sorted in global memory, padded to a power of two.
#define CHUNK 2048
#define FN __device__ __forceinline__
#define PAD_KEY 0xffffffffffffffffull
#define PAD_AT 0xffffffffu

FN u64 key_of(i64 x) { return (u64)x ^ 0x8000000000000000ull; }
FN u64 key_of(float x) {
  if (x != x) return 0xffffffffull;
  u32 b = __float_as_uint(x == 0.0f ? 0.0f : x);
  return (b & 0x80000000u) ? ~b : b | 0x80000000u;
}
FN u64 key_of(double x) {
  if (x != x) return 0xffffffffffffffffull;
  u64 b = (u64)__double_as_longlong(x == 0.0 ? 0.0 : x);
  return (b >> 63) ? ~b : b | 0x8000000000000000ull;
}
FN u64 key_of(bool x) { return x; }
FN u64 key_of(int x) { return key_of((i64)x); }
FN u64 key_of(short x) { return key_of((i64)x); }
FN u64 key_of(signed char x) { return key_of((i64)x); }
FN u64 key_of(unsigned char x) { return key_of((i64)x); }

struct Rows { Dims sizes, strides; i64 step; int dims; };

FN i64 start_of(i64 row, const Rows& r) { return place(row, r.dims, r.sizes, r.strides); }

// Puts a pair in order: the smaller one at i where `up`.
FN void order(u64* keys, u32* at, int i, int j, bool ascending) {
  u64 a = keys[i], b = keys[j];
  u32 p = at[i], q = at[j];
  bool more = a > b || (a == b && p > q);
  if (more == ascending) {
    keys[i] = b;
    keys[j] = a;
    at[i] = q;
    at[j] = p;
  }
}

// The steps with distances from `distance` on of the stages from `stage` to `last`, in shared
// memory; `base` is the place of element 0 in the row.
FN void sort_shared(u64* keys, u32* at, int n, i64 base, i64 stage, i64 last, int distance) {
  for (; stage <= last; stage <<= 1) {
    for (int d = distance > 0 ? distance : (int)(stage >> 1); d > 0; d >>= 1) {
      __syncthreads();
      for (int t = threadIdx.x; t < n / 2; t += blockDim.x) {
        int i = (t / d) * 2 * d + t % d;
        order(keys, at, i, i + d, ((base + i) & stage) == 0);
      }
    }
    distance = 0;
  }
  __syncthreads();
}

FN void write(const TYPE* x, TYPE* values, i64* indices, i64 i, u32 at, const Rows& from,
              const Rows& to) {
  values[i * to.step] = x[(i64)at * from.step];
  indices[i * to.step] = (i64)at;
}

// A block for each row of up to CHUNK elements; `padded` is the power of two from n on.
extern "C" __global__ void sort_rows(const TYPE* in, TYPE* values, i64* indices, int n, int padded,
                                     int wanted, int descending, Rows from, Rows to) {
  __shared__ u64 keys[CHUNK];
  __shared__ u32 at[CHUNK];
  const TYPE* x = in + start_of(blockIdx.x, from);
  i64 out = start_of(blockIdx.x, to);
  for (int i = threadIdx.x; i < padded; i += blockDim.x) {
    u64 k = i < n ? key_of(up(x[i * from.step])) : 0;
    keys[i] = i < n ? (descending ? ~k : k) : PAD_KEY;
    at[i] = i < n ? (u32)i : PAD_AT;
  }
  sort_shared(keys, at, padded, 0, 2, padded, 0);
  for (int i = threadIdx.x; i < wanted; i += blockDim.x) {
    write(x, values + out, indices + out, i, at[i], from, to);
  }
}

// For longer rows: the keys of rows from `first` on into global memory.
extern "C" __global__ void sort_load(const TYPE* in, u64* keys, u32* at, i64 first, i64 rows, i64 n,
                                     i64 padded, int descending, Rows from) {
  i64 all = (i64)gridDim.x * blockDim.x;
  for (i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x; k < rows * padded; k += all) {
    i64 row = k / padded, i = k - row * padded;
    u64 key = PAD_KEY;
    u32 place = PAD_AT;
    if (i < n) {
      key = key_of(up(in[start_of(first + row, from) + i * from.step]));
      if (descending) key = ~key;
      place = (u32)i;
    }
    keys[k] = key;
    at[k] = place;
  }
}

// The stages from `stage` to `last`, from `distance` on, of one chunk in shared memory.
extern "C" __global__ void sort_chunk(u64* keys, u32* at, i64 padded, i64 stage, i64 last,
                                      int distance) {
  __shared__ u64 k[CHUNK];
  __shared__ u32 p[CHUNK];
  i64 start = (i64)blockIdx.x * CHUNK;
  for (int i = threadIdx.x; i < CHUNK; i += blockDim.x) {
    k[i] = keys[start + i];
    p[i] = at[start + i];
  }
  sort_shared(k, p, CHUNK, start & (padded - 1), stage, last, distance);
  for (int i = threadIdx.x; i < CHUNK; i += blockDim.x) {
    keys[start + i] = k[i];
    at[start + i] = p[i];
  }
}

// One step over more than a chunk.
extern "C" __global__ void sort_step(u64* keys, u32* at, i64 pairs, i64 padded, i64 stage,
                                     i64 distance) {
  i64 all = (i64)gridDim.x * blockDim.x;
  for (i64 t = (i64)blockIdx.x * blockDim.x + threadIdx.x; t < pairs; t += all) {
    i64 i = (t / distance) * 2 * distance + t % distance;
    order(keys + i, at + i, 0, (int)distance, (i & (padded - 1) & stage) == 0);
  }
}

extern "C" __global__ void sort_store(const TYPE* in, const u32* at, TYPE* values, i64* indices,
                                      i64 first, i64 rows, i64 wanted, i64 padded, Rows from,
                                      Rows to) {
  i64 all = (i64)gridDim.x * blockDim.x;
  for (i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x; k < rows * wanted; k += all) {
    i64 row = k / wanted, i = k - row * wanted;
    i64 out = start_of(first + row, to);
    write(in + start_of(first + row, from), values + out, indices + out, i, at[row * padded + i],
          from, to);
  }
}
