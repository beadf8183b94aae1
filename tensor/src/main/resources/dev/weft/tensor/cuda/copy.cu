// Copies with conversion: FROM and TO are types of common.cuh.
extern "C" __global__ void copy_dense(const FROM* __restrict__ from, TO* __restrict__ to, i64 n) {
  i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  i64 step = (i64)gridDim.x * blockDim.x;
  const int V = 4;
  i64 whole = n / V;
  for (i64 k = i; k < whole; k += step) {
    Vec<FROM, V> x = ((const Vec<FROM, V>*)from)[k];
    Vec<TO, V> y;
    #pragma unroll
    for (int j = 0; j < V; j++) y.v[j] = down<TO>(up(x.v[j]));
    ((Vec<TO, V>*)to)[k] = y;
  }
  for (i64 k = whole * V + i; k < n; k += step) to[k] = down<TO>(up(from[k]));
}

// The same where an address does not allow four at a time.
extern "C" __global__ void copy_single(const FROM* __restrict__ from, TO* __restrict__ to, i64 n) {
  i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    to[i] = down<TO>(up(from[i]));
  }
}

extern "C" __global__ void copy_strided(const FROM* __restrict__ from, TO* __restrict__ to, i64 n,
                                        int ndim, Dims sizes, Dims from_strides, Dims to_strides) {
  i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    to[place(i, ndim, sizes, to_strides)] = down<TO>(up(from[place(i, ndim, sizes, from_strides)]));
  }
}

// Two-dimensional transposition through shared memory: to[r][c] = from[c][r], both dense in their
// inner dimension, in `batch` matrices.
extern "C" __global__ void copy_transposed(const FROM* __restrict__ from, TO* __restrict__ to,
                                           i64 rows, i64 columns, i64 from_pitch, i64 to_pitch,
                                           i64 from_batch, i64 to_batch) {
  __shared__ FROM tile[32][33];
  const FROM* f = from + (i64)blockIdx.z * from_batch;
  TO* t = to + (i64)blockIdx.z * to_batch;
  i64 c0 = (i64)blockIdx.x * 32, r0 = (i64)blockIdx.y * 32;
  for (int j = threadIdx.y; j < 32; j += 8) {
    i64 c = c0 + j, r = r0 + threadIdx.x;
    if (c < columns && r < rows) tile[j][threadIdx.x] = f[c * from_pitch + r];
  }
  __syncthreads();
  for (int j = threadIdx.y; j < 32; j += 8) {
    i64 r = r0 + j, c = c0 + threadIdx.x;
    if (c < columns && r < rows) t[r * to_pitch + c] = down<TO>(up(tile[threadIdx.x][j]));
  }
}
