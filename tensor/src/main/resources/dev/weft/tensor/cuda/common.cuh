// Put before every kernel source of Weft. No header is included: half-precision numbers are held as
// bit patterns and converted by the GPU's own instructions; all arithmetic on them is float.
typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

struct f16 { u16 bits; };
struct bf16 { u16 bits; };
struct b8 { u8 bits; };  // a truth value: 0 is false, everything else true

#define MAX_DIMS 8
struct Dims { i64 d[MAX_DIMS]; };

#define INF_F __int_as_float(0x7f800000)
#define NAN_F __int_as_float(0x7fc00000)

__device__ __forceinline__ float half_to_float(u16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
__device__ __forceinline__ u16 float_to_half(float f) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
__device__ __forceinline__ float bfloat_to_float(u16 h) { return __uint_as_float((u32)h << 16); }
__device__ __forceinline__ u16 float_to_bfloat(float f) {
  u16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}

// The type that values of T are computed in, and the conversions.
template <typename T> struct Traits { typedef T acc; };
template <> struct Traits<f16> { typedef float acc; };
template <> struct Traits<bf16> { typedef float acc; };
template <> struct Traits<b8> { typedef bool acc; };

template <typename T> __device__ __forceinline__ typename Traits<T>::acc up(T x) { return x; }
template <> __device__ __forceinline__ float up<f16>(f16 x) { return half_to_float(x.bits); }
template <> __device__ __forceinline__ float up<bf16>(bf16 x) { return bfloat_to_float(x.bits); }
template <> __device__ __forceinline__ bool up<b8>(b8 x) { return x.bits != 0; }

// From any number to T; to a truth value: whether it is not 0.
template <typename T, typename S> struct Down { static __device__ __forceinline__ T of(S x) { return (T)x; } };
template <typename S> struct Down<f16, S> { static __device__ __forceinline__ f16 of(S x) { f16 r; r.bits = float_to_half((float)x); return r; } };
template <typename S> struct Down<bf16, S> { static __device__ __forceinline__ bf16 of(S x) { bf16 r; r.bits = float_to_bfloat((float)x); return r; } };
template <typename S> struct Down<b8, S> { static __device__ __forceinline__ b8 of(S x) { b8 r; r.bits = x != (S)0; return r; } };
template <typename T, typename S> __device__ __forceinline__ T down(S x) { return Down<T, S>::of(x); }

// N values that are loaded and stored in one transaction where N * sizeof(T) is 4, 8 or 16.
template <typename T, int N> struct alignas(sizeof(T) * N) Vec { T v[N]; };

// The place of element i of a space, in elements of a tensor with these strides.
__device__ __forceinline__ i64 place(i64 i, int ndim, const Dims& sizes, const Dims& strides) {
  i64 at = 0;
  #pragma unroll 1
  for (int d = 0; d < ndim; d++) {
    if (i <= 0x7fffffff && sizes.d[d] <= 0x7fffffff) {
      u32 q = (u32)i / (u32)sizes.d[d];
      at += (i64)((u32)i - q * (u32)sizes.d[d]) * strides.d[d];
      i = q;
    } else {
      i64 q = i / sizes.d[d];
      at += (i - q * sizes.d[d]) * strides.d[d];
      i = q;
    }
  }
  return at;
}

// Sums and maxima over a warp, and over a block of up to 1024 threads; all threads get the result.
template <typename A> __device__ __forceinline__ A warp_sum(A x) {
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) x += __shfl_xor_sync(0xffffffffu, x, o);
  return x;
}
__device__ __forceinline__ float warp_max(float x) {
  #pragma unroll
  for (int o = 16; o > 0; o >>= 1) {
    float y = __shfl_xor_sync(0xffffffffu, x, o);
    x = (x > y || x != x) ? x : y;
  }
  return x;
}
template <typename A> __device__ __forceinline__ A block_sum(A x) {
  __shared__ A part[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
  x = warp_sum(x);
  __syncthreads();
  if (lane == 0) part[warp] = x;
  __syncthreads();
  x = lane < warps ? part[lane] : (A)0;
  return warp_sum(x);
}
__device__ __forceinline__ float block_max(float x) {
  __shared__ float part[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = (blockDim.x + 31) >> 5;
  x = warp_max(x);
  __syncthreads();
  if (lane == 0) part[warp] = x;
  __syncthreads();
  x = lane < warps ? part[lane] : -INF_F;
  return warp_max(x);
}

// Tells the host of a position that is out of range (CudaFaults): the first word names the operator
// in its upper 16 bits and holds the size, the second the position. One store of 16 bytes, so that
// records of several threads do not mix.
__device__ __forceinline__ void report_fault(u64* faults, int op, i64 index, i64 size) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};"
               :: "l"(faults), "l"((u64)op << 48 | ((u64)size & 0xffffffffffffull)), "l"((u64)index)
               : "memory");
  __threadfence_system();
}
