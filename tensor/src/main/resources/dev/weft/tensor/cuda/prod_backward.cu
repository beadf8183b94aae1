// The gradient of a product: g times the product of all other elements. TYPE is a type of
// common.cuh, ACC the one to multiply in; a thread for each product.
extern "C" __global__ void prod_backward(const TYPE* g, const TYPE* in, TYPE* out, ACC* before,
                                         i64 results, i64 n, int g_dims, int kept_dims, int dims,
                                         Dims g_sizes, Dims g_strides, Dims kept_sizes,
                                         Dims in_kept, Dims out_kept, Dims sizes, Dims in_strides,
                                         Dims out_strides) {
  i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= results) return;
  const TYPE* x = in + place(k, kept_dims, kept_sizes, in_kept);
  TYPE* y = out + place(k, kept_dims, kept_sizes, out_kept);
  ACC product = (ACC)up(g[place(k, g_dims, g_sizes, g_strides)]);
  for (i64 i = 0; i < n; i++) {
    before[i * results + k] = product;
    product *= (ACC)up(x[place(i, dims, sizes, in_strides)]);
  }
  ACC after = (ACC)1;
  for (i64 i = n - 1; i >= 0; i--) {
    y[place(i, dims, sizes, out_strides)] = down<TYPE>(before[i * results + k] * after);
    after *= (ACC)up(x[place(i, dims, sizes, in_strides)]);
  }
}
