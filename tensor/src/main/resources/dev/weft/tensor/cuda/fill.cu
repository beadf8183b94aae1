// Fills with one value; TYPE is a type of common.cuh. Floating-point types take `real`, others
// `whole`.
template <typename U> struct Value { static __device__ U of(double real, i64 whole) { return (U)whole; } };
template <> struct Value<double> { static __device__ double of(double real, i64) { return real; } };
template <> struct Value<float> { static __device__ float of(double real, i64) { return (float)real; } };
template <> struct Value<f16> { static __device__ f16 of(double real, i64) { return down<f16>((float)real); } };
template <> struct Value<bf16> { static __device__ bf16 of(double real, i64) { return down<bf16>((float)real); } };
template <> struct Value<b8> { static __device__ b8 of(double, i64 whole) { return down<b8>(whole); } };

extern "C" __global__ void fill_dense(TYPE* to, i64 n, double real, i64 whole, int, Dims, Dims) {
  const int V = 16 / sizeof(TYPE);
  TYPE v = Value<TYPE>::of(real, whole);
  i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  i64 step = (i64)gridDim.x * blockDim.x;
  i64 vectors = (u64)to % 16 == 0 ? n / V : 0;
  Vec<TYPE, V> all;
  #pragma unroll
  for (int j = 0; j < V; j++) all.v[j] = v;
  for (i64 k = first; k < vectors; k += step) ((Vec<TYPE, V>*)to)[k] = all;
  for (i64 k = vectors * V + first; k < n; k += step) to[k] = v;
}

extern "C" __global__ void fill_strided(TYPE* to, i64 n, double real, i64 whole, int ndim,
                                        Dims sizes, Dims strides) {
  TYPE v = Value<TYPE>::of(real, whole);
  i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    to[place(i, ndim, sizes, strides)] = v;
  }
}

// start, start + step, ...; integers are exact.
extern "C" __global__ void arange(TYPE* to, i64 n, double start, double by, i64 whole_start,
                                  i64 whole_by, int ndim, Dims sizes, Dims strides) {
  i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    to[place(i, ndim, sizes, strides)] = Value<TYPE>::of(
        __dadd_rn(start, __dmul_rn((double)i, by)), whole_start + i * whole_by);
  }
}
