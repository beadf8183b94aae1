// Products of integer matrices, which wrap: T is an integer type of common.cuh. Floating-point ones
// are cuBLAS's.
#define TILE 16

extern "C" __global__ void matmul_whole(const T* __restrict__ a, const T* __restrict__ b,
                                        T* __restrict__ c, i64 m, i64 n, i64 k, i64 a_row,
                                        i64 a_column, i64 b_row, i64 b_column, i64 alpha, i64 beta,
                                        i64 batches, int ndim, Dims sizes, Dims a_batch,
                                        Dims b_batch) {
  __shared__ T left[TILE][TILE + 1];
  __shared__ T right[TILE][TILE + 1];
  int tx = threadIdx.x, ty = threadIdx.y;
  i64 row = (i64)blockIdx.y * TILE + ty, column = (i64)blockIdx.x * TILE + tx;
  for (i64 batch = blockIdx.z; batch < batches; batch += gridDim.z) {
    const T* x = a + place(batch, ndim, sizes, a_batch);
    const T* y = b + place(batch, ndim, sizes, b_batch);
    u64 sum = 0;
    for (i64 at = 0; at < k; at += TILE) {
      left[ty][tx] = row < m && at + tx < k ? x[row * a_row + (at + tx) * a_column] : (T)0;
      right[ty][tx] = at + ty < k && column < n ? y[(at + ty) * b_row + column * b_column] : (T)0;
      __syncthreads();
      #pragma unroll
      for (int i = 0; i < TILE; i++) sum += (u64)(i64)left[ty][i] * (u64)(i64)right[i][tx];
      __syncthreads();
    }
    if (row < m && column < n) {
      T* to = c + (batch * m + row) * n + column;
      u64 value = (u64)alpha * sum;
      if (beta != 0) value += (u64)beta * (u64)(i64)*to;
      *to = (T)(i64)value;
    }
  }
}
