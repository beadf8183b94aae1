// silu(a) b and its gradients: T is the type of the numbers; data is dense.
typedef typename Traits<T>::acc A;
#define V (16 / (int)sizeof(T))
typedef Vec<T, V> Wide;

__device__ __forceinline__ float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }
__device__ __forceinline__ double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

__device__ __forceinline__ T value(T a, T b) {
  A x = up(a);
  return down<T>(x * sigmoid(x) * up(b));
}

__device__ __forceinline__ void gradient(T g, T a, T b, T& ga, T& gb) {
  A x = up(a), s = sigmoid(x), d = up(g);
  ga = down<T>(d * up(b) * s * ((A)1 + x * ((A)1 - s)));
  gb = down<T>(d * x * s);
}

extern "C" __global__ void swiglu_wide(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ out, i64 n) {
  i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, step = (i64)gridDim.x * blockDim.x;
  for (i64 i = first; i < n / V; i += step) {
    Wide x = ((const Wide*)a)[i], y = ((const Wide*)b)[i];
    #pragma unroll
    for (int j = 0; j < V; j++) x.v[j] = value(x.v[j], y.v[j]);
    ((Wide*)out)[i] = x;
  }
  for (i64 i = n / V * V + first; i < n; i += step) out[i] = value(a[i], b[i]);
}

extern "C" __global__ void swiglu_single(const T* __restrict__ a, const T* __restrict__ b, T* __restrict__ out, i64 n) {
  i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) out[i] = value(a[i], b[i]);
}

extern "C" __global__ void swiglu_backward_wide(const T* __restrict__ g, const T* __restrict__ a,
                                                const T* __restrict__ b, T* __restrict__ ga, T* __restrict__ gb, i64 n) {
  i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x, step = (i64)gridDim.x * blockDim.x;
  for (i64 i = first; i < n / V; i += step) {
    Wide d = ((const Wide*)g)[i], x = ((const Wide*)a)[i], y = ((const Wide*)b)[i], p, q;
    #pragma unroll
    for (int j = 0; j < V; j++) gradient(d.v[j], x.v[j], y.v[j], p.v[j], q.v[j]);
    ((Wide*)ga)[i] = p;
    ((Wide*)gb)[i] = q;
  }
  for (i64 i = n / V * V + first; i < n; i += step) gradient(g[i], a[i], b[i], ga[i], gb[i]);
}

extern "C" __global__ void swiglu_backward_single(const T* __restrict__ g, const T* __restrict__ a,
                                                  const T* __restrict__ b, T* __restrict__ ga, T* __restrict__ gb,
                                                  i64 n) {
  i64 step = (i64)gridDim.x * blockDim.x;
  for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) gradient(g[i], a[i], b[i], ga[i], gb[i]);
}
