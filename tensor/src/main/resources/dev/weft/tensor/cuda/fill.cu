// Fills with one value; T is a type of common.cuh. Floating-point types take `real`, others `whole`.
template <typename U> struct Value { static __device__ U of(double real, i64 whole) { return (U)whole; } };
template <> struct Value<double> { static __device__ double of(double real, i64) { return real; } };
template <> struct Value<float> { static __device__ float of(double real, i64) { return (float)real; } };
template <> struct Value<f16> { static __device__ f16 of(double real, i64) { return down<f16>((float)real); } };
template <> struct Value<bf16> { static __device__ bf16 of(double real, i64) { return down<bf16>((float)real); } };
template <> struct Value<b8> { static __device__ b8 of(double, i64 whole) { return down<b8>(whole); } };

extern "C" __global__ void fill_dense(T* to, i64 n, double real, i64 whole, int, Dims, Dims) {
  T v = Value<T>::of(real, whole);
  i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) to[i] = v;
}

extern "C" __global__ void fill_strided(T* to, i64 n, double real, i64 whole, int ndim, Dims sizes,
                                        Dims strides) {
  T v = Value<T>::of(real, whole);
  i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
    to[place(i, ndim, sizes, strides)] = v;
  }
}
