// Random values, bit for bit those of the CPU: Philox-4x32-10 (Salmon et al., SC 2011) counted by
// each element's row-major index in the whole tensor. TYPE is a type of common.cuh. Arithmetic is
// in double without fused operations, as on the CPU.
#define FN __device__ __forceinline__

struct Stream { u64 seed, offset; };

// Where the tensor's elements are and what their indices in the whole are.
struct Window { Dims sizes, strides, whole_strides; i64 start; int dims, aligned; };

FN void philox(const Stream& s, u64 block, u64& even, u64& odd) {
  u64 counter = s.offset + block;
  u32 c0 = (u32)counter, c1 = (u32)(counter >> 32), c2 = 0, c3 = 0;
  u32 k0 = (u32)s.seed, k1 = (u32)(s.seed >> 32);
  #pragma unroll
  for (int round = 0; round < 10; round++) {
    u32 h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
    u32 h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0;
    c1 = l1;
    c2 = h0 ^ c3 ^ k1;
    c3 = l0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  even = (u64)c1 << 32 | c0;
  odd = (u64)c3 << 32 | c2;
}

FN double single(u64 bits) { return (double)(bits >> 40) * 5.9604644775390625e-8; }  // 2^-24
FN double wide(u64 bits) { return (double)(bits >> 11) * 1.1102230246251565e-16; }  // 2^-53

FN double affine(double start, double factor, double x) { return __dadd_rn(start, __dmul_rn(factor, x)); }

struct Uniform {
  static FN TYPE of(u64 bits, const TYPE*, i64, double low, double range, i64, i64) {
    return down<TYPE>(affine(low, range, sizeof(TYPE) == 8 ? wide(bits) : single(bits)));
  }
};
struct Normal {  // by Box and Muller
  static FN TYPE of(u64 bits, const TYPE*, i64, double mean, double std, i64, i64) {
    double u = ((double)(bits & 0xffffffffull) + 1) * 2.3283064365386963e-10;  // 2^-32
    double v = (double)(bits >> 32) * 2.3283064365386963e-10;
    double z = __dmul_rn(sqrt(__dmul_rn(-2.0, log(u))), cos(__dmul_rn(6.283185307179586, v)));
    return down<TYPE>(affine(mean, std, z));
  }
};
struct Integers {
  static FN TYPE of(u64 bits, const TYPE*, i64, double, double, i64 low, i64 range) {
    return down<TYPE>(low + (i64)(bits >> 1) % range);
  }
};
struct Dropout {
  static FN TYPE of(u64 bits, const TYPE* in, i64 at, double p, double scale, i64, i64) {
    return down<TYPE>(single(bits) < p ? 0.0 : (double)up(in[at]) * scale);
  }
};

// Two neighbours share a block where the tensor is the whole and contiguous (`aligned`), else each
// element makes its own.
extern "C" __global__ void random_values(TYPE* out, const TYPE* in, i64 n, Stream stream, double a,
                                         double b, i64 c, i64 d, Window w) {
  i64 all = (i64)gridDim.x * blockDim.x;
  i64 first = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (w.aligned) {
    for (i64 k = first; k < (n + 1) / 2; k += all) {
      u64 even, odd;
      philox(stream, (u64)k, even, odd);
      out[2 * k] = KIND::of(even, in, 2 * k, a, b, c, d);
      if (2 * k + 1 < n) out[2 * k + 1] = KIND::of(odd, in, 2 * k + 1, a, b, c, d);
    }
    return;
  }
  for (i64 k = first; k < n; k += all) {
    u64 even, odd;
    i64 index = w.start + place(k, w.dims, w.sizes, w.whole_strides);
    philox(stream, (u64)index >> 1, even, odd);
    out[place(k, w.dims, w.sizes, w.strides)] =
        KIND::of((index & 1) == 0 ? even : odd, in, k, a, b, c, d);
  }
}
