// Running sums along a dimension. IN and OUT are types of common.cuh, ACC the type to add in.
struct Rows { Dims sizes, strides; int dims; };

// A block for each row: `n` elements, `stride` apart, from the end where `reverse`. The result is
// contiguous in the same shape; rows of both are at the places given.
extern "C" __global__ void scan_rows(const IN* in, OUT* out, i64 n, i64 stride, i64 out_stride,
                                     int reverse, Rows from, Rows to) {
  __shared__ ACC of_warp[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  const IN* x = in + place(blockIdx.x, from.dims, from.sizes, from.strides);
  OUT* y = out + place(blockIdx.x, to.dims, to.sizes, to.strides);
  ACC carry = (ACC)0;
  for (i64 base = 0; base < n; base += blockDim.x) {
    i64 i = base + threadIdx.x;
    i64 at = reverse ? n - 1 - i : i;
    ACC v = i < n ? (ACC)up(x[at * stride]) : (ACC)0;
    #pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      ACC below = __shfl_up_sync(0xffffffffu, v, o);
      if (lane >= o) v += below;
    }
    if (lane == 31) of_warp[warp] = v;
    __syncthreads();
    ACC before = carry;
    for (int w = 0; w < warp; w++) before += of_warp[w];
    ACC all = carry;
    for (int w = 0; w < warps; w++) all += of_warp[w];
    if (i < n) y[at * out_stride] = down<OUT>(before + v);
    carry = all;
    __syncthreads();
  }
}

// A thread for each row, where neighbouring rows lie next to each other.
extern "C" __global__ void scan_columns(const IN* in, OUT* out, i64 rows, i64 n, i64 stride,
                                        i64 out_stride, int reverse, Rows from, Rows to) {
  i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= rows) return;
  const IN* x = in + place(k, from.dims, from.sizes, from.strides);
  OUT* y = out + place(k, to.dims, to.sizes, to.strides);
  ACC sum = (ACC)0;
  for (i64 i = 0; i < n; i++) {
    i64 at = reverse ? n - 1 - i : i;
    sum += (ACC)up(x[at * stride]);
    y[at * out_stride] = down<OUT>(sum);
  }
}
