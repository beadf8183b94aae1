// Rotation of neighbouring pairs of the last dimension: T is the type of the numbers, tables are of
// type A. Data is dense; row r has position r / inner % positions and `half` pairs.
typedef typename Traits<T>::acc A;
#define PAIRS (8 / (int)sizeof(T))

// The row of item i of rows of `width` items, and where that row's angles begin.
__device__ __forceinline__ i64 angles(i64 i, i64 items, int width, int half, u32 positions, u32 inner, int& e) {
  if (items <= 0x7fffffff) {
    u32 row = (u32)i / (u32)width;
    e = (int)((u32)i - row * (u32)width);
    return (i64)(row / inner % positions) * half;
  }
  i64 row = i / width;
  e = (int)(i - row * width);
  return row / inner % positions * half;
}

extern "C" __global__ void rope_wide(const T* __restrict__ in, const A* __restrict__ cosines,
                                     const A* __restrict__ sines, T* __restrict__ out, i64 items, int half,
                                     u32 positions, u32 inner, A sign) {
  int width = half / PAIRS;
  i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < items; i += step) {
    int e;
    i64 table = angles(i, items, width, half, positions, inner, e);
    table += e * PAIRS;
    Vec<T, 2 * PAIRS> x = ((const Vec<T, 2 * PAIRS>*)in)[i];
    Vec<A, PAIRS> c = *(const Vec<A, PAIRS>*)(cosines + table);
    Vec<A, PAIRS> s = *(const Vec<A, PAIRS>*)(sines + table);
    #pragma unroll
    for (int j = 0; j < PAIRS; j++) {
      A a = up(x.v[2 * j]), b = up(x.v[2 * j + 1]), k = sign * s.v[j];
      x.v[2 * j] = down<T>(a * c.v[j] - b * k);
      x.v[2 * j + 1] = down<T>(a * k + b * c.v[j]);
    }
    ((Vec<T, 2 * PAIRS>*)out)[i] = x;
  }
}

extern "C" __global__ void rope_single(const T* __restrict__ in, const A* __restrict__ cosines,
                                       const A* __restrict__ sines, T* __restrict__ out, i64 items, int half,
                                       u32 positions, u32 inner, A sign) {
  i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < items; i += step) {
    int e;
    i64 table = angles(i, items, half, half, positions, inner, e);
    table += e;
    A a = up(in[2 * i]), b = up(in[2 * i + 1]), c = cosines[table], k = sign * sines[table];
    out[2 * i] = down<T>(a * c - b * k);
    out[2 * i + 1] = down<T>(a * k + b * c);
  }
}
