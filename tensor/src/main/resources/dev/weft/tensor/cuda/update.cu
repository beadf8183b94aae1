// Updates of many tensors in one launch: P is the type of a parameter and its state, G that of its
// gradient. A block has a chunk of one tensor; `first` tells which chunk each tensor begins with.
#define CHUNK 16384
#define TENSORS 88
typedef typename Traits<P>::acc A;

struct Table {
  u64 p[TENSORS], g[TENSORS], m[TENSORS], v[TENSORS];
  i64 n[TENSORS];
  i32 first[TENSORS + 1];
  i32 count;
};

// The tensor that a chunk belongs to.
__device__ __forceinline__ int owner(const i32* first, int count, int chunk) {
  int low = 0, high = count;
  while (high - low > 1) {
    int middle = (low + high) >> 1;
    if (first[middle] <= chunk) low = middle;
    else high = middle;
  }
  return low;
}

__device__ __forceinline__ float root(float x) { return sqrtf(x); }
__device__ __forceinline__ double root(double x) { return sqrt(x); }

struct Step { A decay, b1, c1, b2, c2, size, correction, eps; };

__device__ __forceinline__ void adam(A& p, A g, A& m, A& v, const Step& s) {
  m = s.b1 * m + s.c1 * g;
  v = s.b2 * v + s.c2 * g * g;
  p = p * s.decay - s.size * m / (root(v) / s.correction + s.eps);
}

extern "C" __global__ void __launch_bounds__(256) adamw(const __grid_constant__ Table table, double decay, double beta1, double beta2,
                                 double size, double correction, double eps) {
  int t = owner(table.first, table.count, blockIdx.x);
  i64 at = (i64)(blockIdx.x - table.first[t]) * CHUNK;
  i64 left = table.n[t] - at;
  int n = left < CHUNK ? (int)left : CHUNK;
  P* p = (P*)table.p[t] + at;
  const G* g = (const G*)table.g[t] + at;
  P* m = (P*)table.m[t] + at;
  P* v = (P*)table.v[t] + at;
  Step s = {(A)decay, (A)beta1, (A)(1 - beta1), (A)beta2, (A)(1 - beta2), (A)size, (A)correction, (A)eps};
  int whole = 0;
  if ((((u64)p | (u64)m | (u64)v) % (4 * sizeof(P)) | (u64)g % (4 * sizeof(G))) == 0) {
    whole = n / 4;
    for (int i = threadIdx.x; i < whole; i += blockDim.x) {
      Vec<P, 4> ps = ((Vec<P, 4>*)p)[i], ms = ((Vec<P, 4>*)m)[i], vs = ((Vec<P, 4>*)v)[i];
      Vec<G, 4> gs = ((const Vec<G, 4>*)g)[i];
      #pragma unroll
      for (int j = 0; j < 4; j++) {
        A a = up(ps.v[j]), b = up(ms.v[j]), c = up(vs.v[j]);
        adam(a, (A)up(gs.v[j]), b, c, s);
        ps.v[j] = down<P>(a);
        ms.v[j] = down<P>(b);
        vs.v[j] = down<P>(c);
      }
      ((Vec<P, 4>*)p)[i] = ps;
      ((Vec<P, 4>*)m)[i] = ms;
      ((Vec<P, 4>*)v)[i] = vs;
    }
  }
  for (int i = 4 * whole + threadIdx.x; i < n; i += blockDim.x) {
    A a = up(p[i]), b = up(m[i]), c = up(v[i]);
    adam(a, (A)up(g[i]), b, c, s);
    p[i] = down<P>(a);
    m[i] = down<P>(b);
    v[i] = down<P>(c);
  }
}
