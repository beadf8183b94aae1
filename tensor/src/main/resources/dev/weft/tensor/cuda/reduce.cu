// One reduction. Defined by the caller: OP, one of the structs below; IN and OUT, the types of the
// elements and of the results; ACC, the type to compute in: float, double or i64. Whatever the grid,
// elements are combined in an order that only depends on the shape: results repeat bit by bit.
// PART: 0 for rows, 1 for columns.
#define FN __device__ __forceinline__

// What a reduction is told: a divisor, an order or a correction.
struct Told { double number; };

FN float m_exp(float x) { return expf(x); }
FN double m_exp(double x) { return exp(x); }
FN float m_log(float x) { return logf(x); }
FN double m_log(double x) { return log(x); }
FN float m_sqrt(float x) { return sqrtf(x); }
FN double m_sqrt(double x) { return sqrt(x); }
FN float m_pow(float x, float y) { return powf(x, y); }
FN double m_pow(double x, double y) { return pow(x, y); }
template <typename X> FN X magnitude(X x) { return x < (X)0 ? -x : x; }

template <typename X> struct Limits {};
template <> struct Limits<float> {
  static FN float lowest() { return -INF_F; }
  static FN float highest() { return INF_F; }
};
template <> struct Limits<double> {
  static FN double lowest() { return __longlong_as_double(0xfff0000000000000ll); }
  static FN double highest() { return __longlong_as_double(0x7ff0000000000000ll); }
};
template <> struct Limits<i64> {
  static FN i64 lowest() { return (i64)0x8000000000000000ull; }
  static FN i64 highest() { return 0x7fffffffffffffffll; }
};

// A state is made by start(), takes elements and other states, and is turned into the result.
template <typename X> struct SumState {
  X sum;
  __device__ void start(Told) { sum = (X)0; }
  __device__ void merge(const SumState& o, Told) { sum += o.sum; }
};
template <typename X> struct SumOf : SumState<X> {
  __device__ void take(X x, i64, Told) { this->sum += x; }
  __device__ X result(Told) { return this->sum; }
};
template <typename X> struct MeanOf : SumOf<X> {
  __device__ X result(Told t) { return this->sum / (X)t.number; }
};
template <typename X> struct Norm2Of : SumState<X> {
  __device__ void take(X x, i64, Told) { this->sum += x * x; }
  __device__ X result(Told) { return m_sqrt(this->sum); }
};
template <typename X> struct Norm1Of : SumState<X> {
  __device__ void take(X x, i64, Told) { this->sum += magnitude(x); }
  __device__ X result(Told) { return this->sum; }
};
template <typename X> struct Norm0Of : SumState<X> {
  __device__ void take(X x, i64, Told) { this->sum += x != (X)0 ? (X)1 : (X)0; }
  __device__ X result(Told) { return this->sum; }
};
template <typename X> struct NormOf : SumState<X> {
  __device__ void take(X x, i64, Told t) { this->sum += m_pow(magnitude(x), (X)t.number); }
  __device__ X result(Told t) { return m_pow(this->sum, (X)(1 / t.number)); }
};
template <typename X> struct ProdOf {
  X product;
  __device__ void start(Told) { product = (X)1; }
  __device__ void take(X x, i64, Told) { product *= x; }
  __device__ void merge(const ProdOf& o, Told) { product *= o.product; }
  __device__ X result(Told) { return product; }
};
// The larger or smaller; NaN wins.
template <typename X, bool MAX> struct Extremum {
  X best;
  __device__ void start(Told) { best = MAX ? Limits<X>::lowest() : Limits<X>::highest(); }
  __device__ void offer(X x) {
    bool better = MAX ? x > best : x < best;
    best = best != best ? best : (better || x != x) ? x : best;
  }
  __device__ void take(X x, i64, Told) { offer(x); }
  __device__ void merge(const Extremum& o, Told) { offer(o.best); }
  __device__ X result(Told) { return best; }
};
template <typename X> struct AmaxOf : Extremum<X, true> {};
template <typename X> struct AminOf : Extremum<X, false> {};
template <typename X> struct NormMaxOf : Extremum<X, true> {
  __device__ void start(Told) { this->best = (X)0; }
  __device__ void take(X x, i64, Told) { this->offer(magnitude(x)); }
};
template <typename X> struct NormMinOf : Extremum<X, false> {
  __device__ void take(X x, i64, Told) { this->offer(magnitude(x)); }
};
// The position of the first extremum, or of the first NaN.
template <typename X, bool MAX> struct Place {
  i64 index;
  X best;
  __device__ void start(Told) {
    index = -1;
    best = (X)0;
  }
  __device__ void offer(X x, i64 at) {
    if (at < 0) return;
    bool wins;
    if (index < 0) {
      wins = true;
    } else if (best != best) {
      wins = x != x && at < index;
    } else if (x != x) {
      wins = true;
    } else if (x == best) {
      wins = at < index;
    } else {
      wins = MAX ? x > best : x < best;
    }
    if (wins) {
      best = x;
      index = at;
    }
  }
  __device__ void take(X x, i64 at, Told) { offer(x, at); }
  __device__ void merge(const Place& o, Told) { offer(o.best, o.index); }
  __device__ i64 result(Told) { return index; }
};
template <typename X> struct ArgmaxOf : Place<X, true> {};
template <typename X> struct ArgminOf : Place<X, false> {};
template <typename X> struct AllOf {
  int value;
  __device__ void start(Told) { value = 1; }
  __device__ void take(X x, i64, Told) { value &= x != (X)0; }
  __device__ void merge(const AllOf& o, Told) { value &= o.value; }
  __device__ int result(Told) { return value; }
};
template <typename X> struct AnyOf {
  int value;
  __device__ void start(Told) { value = 0; }
  __device__ void take(X x, i64, Told) { value |= x != (X)0; }
  __device__ void merge(const AnyOf& o, Told) { value |= o.value; }
  __device__ int result(Told) { return value; }
};
// Welford's recurrence, and the merge of Chan, Golub and LeVeque (1979).
template <typename X> struct VarOf {
  X count, mean, squares;
  __device__ void start(Told) { count = mean = squares = (X)0; }
  __device__ void take(X x, i64, Told) {
    count += (X)1;
    X d = x - mean;
    mean += d / count;
    squares += d * (x - mean);
  }
  __device__ void merge(const VarOf& o, Told) {
    if (o.count == (X)0) return;
    X total = count + o.count;
    X d = o.mean - mean;
    squares += o.squares + d * d * count * (o.count / total);
    mean += d * (o.count / total);
    count = total;
  }
  __device__ X result(Told t) {
    X divisor = count - (X)t.number;
    return squares / (count == (X)0 || divisor < (X)0 ? (X)0 : divisor);
  }
};
template <typename X> struct StdOf : VarOf<X> {
  __device__ X result(Told t) { return m_sqrt(VarOf<X>::result(t)); }
};
// ln of the sum of exponentials, of which the largest is kept out.
template <typename X> struct LogsumexpOf {
  X max, sum;
  __device__ void start(Told) {
    max = Limits<X>::lowest();
    sum = (X)0;
  }
  static FN X shift(X m) { return m == Limits<X>::lowest() || m == Limits<X>::highest() ? (X)0 : m; }
  __device__ void add(X m, X s) {
    X larger = max != max ? max : (m > max || m != m) ? m : max;
    X by = shift(larger);
    X mine = sum == (X)0 ? (X)0 : sum * m_exp(max - by);
    X other = s == (X)0 ? (X)0 : s * m_exp(m - by);
    max = larger;
    sum = mine + other;
  }
  __device__ void take(X x, i64, Told) { add(x, (X)1); }
  __device__ void merge(const LogsumexpOf& o, Told) { add(o.max, o.sum); }
  __device__ X result(Told) { return m_log(sum) + shift(max); }
};

typedef OP<ACC> State;

// The state of another lane, word by word.
FN State exchange(const State& s, int mask) {
  static_assert(sizeof(State) % 4 == 0, "a state is made of words");
  State r;
  const int* from = (const int*)&s;
  int* to = (int*)&r;
  #pragma unroll
  for (int i = 0; i < (int)(sizeof(State) / 4); i++) to[i] = __shfl_xor_sync(0xffffffffu, from[i], mask);
  return r;
}
// Both lanes of a pair combine in the same order: the lower one first.
FN void combine(State& s, int mask, int lane, Told t) {
  State o = exchange(s, mask);
  if (lane & mask) {
    o.merge(s, t);
    s = o;
  } else {
    s.merge(o, t);
  }
}

constexpr int UNROLL = 4;

struct Space {  // where the elements are: those of one result, and from result to result
  Dims kept_sizes, kept_strides, sizes, strides;
  int kept_dims, dims;
};

#if PART == 0
constexpr int WIDTH = 16 / sizeof(IN);

// Results along y, and the elements of each over blockDim.x threads (a power of two up to 32, or
// whole warps with one result a block), and over `splits` blocks in grid y, whose states go to
// `parts` where there are several. `dense`: elements lie one after the other; `vector`: at
// addresses that allow WIDTH at a time.
extern "C" __global__ void rows(const IN* in, OUT* out, State* parts, i64 results, i64 elements,
                                Told told, int dense, int vector, Space space) {
  int lane = threadIdx.x & 31;
  i64 k = (i64)blockIdx.x * blockDim.y + threadIdx.y;
  State s;
  s.start(told);
  if (k < results) {
    const IN* row = in + place(k, space.kept_dims, space.kept_sizes, space.kept_strides);
    // Ranges of the splits begin at whole vectors.
    i64 each = (elements + gridDim.y - 1) / gridDim.y;
    each = (each + WIDTH - 1) / WIDTH * WIDTH;
    i64 from = (i64)blockIdx.y * each;
    i64 to = from + each < elements ? from + each : elements;
    i64 step = blockDim.x;
    if (dense && vector) {
      const Vec<IN, WIDTH>* v = (const Vec<IN, WIDTH>*)row;
      i64 last = from + (to > from ? (to - from) / WIDTH * WIDTH : 0);
      i64 end = last / WIDTH;
      for (i64 i = from / WIDTH + threadIdx.x; i < end; i += UNROLL * step) {
        Vec<IN, WIDTH> x[UNROLL];
        #pragma unroll
        for (int u = 0; u < UNROLL; u++) {
          if (i + u * step < end) x[u] = v[i + u * step];
        }
        #pragma unroll
        for (int u = 0; u < UNROLL; u++) {
          if (i + u * step < end) {
            #pragma unroll
            for (int j = 0; j < WIDTH; j++) {
              s.take((ACC)up(x[u].v[j]), (i + u * step) * WIDTH + j, told);
            }
          }
        }
      }
      for (i64 i = last + threadIdx.x; i < to; i += step) s.take((ACC)up(row[i]), i, told);
    } else if (dense) {
      for (i64 i = from + threadIdx.x; i < to; i += UNROLL * step) {
        IN x[UNROLL];
        #pragma unroll
        for (int u = 0; u < UNROLL; u++) {
          if (i + u * step < to) x[u] = row[i + u * step];
        }
        #pragma unroll
        for (int u = 0; u < UNROLL; u++) {
          if (i + u * step < to) s.take((ACC)up(x[u]), i + u * step, told);
        }
      }
    } else {
      for (i64 i = from + threadIdx.x; i < to; i += step) {
        s.take((ACC)up(row[place(i, space.dims, space.sizes, space.strides)]), i, told);
      }
    }
  }
  int width = blockDim.x < 32 ? blockDim.x : 32;
  for (int m = 1; m < width; m <<= 1) combine(s, m, lane, told);
  if (blockDim.x > 32) {
    __shared__ State of_warp[32];
    if (lane == 0) of_warp[threadIdx.x >> 5] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
      for (int w = 1; w < (int)(blockDim.x >> 5); w++) s.merge(of_warp[w], told);
    }
  }
  if (threadIdx.x == 0 && k < results) {
    if (gridDim.y > 1) {
      parts[(i64)blockIdx.y * results + k] = s;
    } else {
      out[k] = down<OUT>(s.result(told));
    }
  }
}
#else
// Neighbouring results along x, whose elements are `strides` apart; 32 x 16 threads.
extern "C" __global__ void columns(const IN* in, OUT* out, State* parts, i64 results, i64 elements,
                                   Told told, Space space) {
  __shared__ State of_row[16][32];
  i64 k = (i64)blockIdx.x * 32 + threadIdx.x;
  State s;
  s.start(told);
  if (k < results) {
    const IN* column = in + place(k, space.kept_dims, space.kept_sizes, space.kept_strides);
    i64 each = (elements + gridDim.y - 1) / gridDim.y;
    i64 from = (i64)blockIdx.y * each;
    i64 to = from + each < elements ? from + each : elements;
    i64 step = blockDim.y;
    bool even = space.dims == 1;
    i64 stride = space.strides.d[0];
    for (i64 i = from + threadIdx.y; i < to; i += UNROLL * step) {
      IN x[UNROLL];
      #pragma unroll
      for (int u = 0; u < UNROLL; u++) {
        i64 e = i + u * step;
        if (e < to) x[u] = column[even ? e * stride : place(e, space.dims, space.sizes, space.strides)];
      }
      #pragma unroll
      for (int u = 0; u < UNROLL; u++) {
        if (i + u * step < to) s.take((ACC)up(x[u]), i + u * step, told);
      }
    }
  }
  of_row[threadIdx.y][threadIdx.x] = s;
  __syncthreads();
  if (threadIdx.y == 0 && k < results) {
    for (int y = 1; y < (int)blockDim.y; y++) s.merge(of_row[y][threadIdx.x], told);
    if (gridDim.y > 1) {
      parts[(i64)blockIdx.y * results + k] = s;
    } else {
      out[k] = down<OUT>(s.result(told));
    }
  }
}
#endif

// The states of several blocks for each result put together; a warp for each result.
extern "C" __global__ void finish(const State* parts, OUT* out, i64 results, int splits, Told told) {
  int lane = threadIdx.x;
  i64 k = (i64)blockIdx.x * blockDim.y + threadIdx.y;
  State s;
  s.start(told);
  if (k < results) {
    for (int i = lane; i < splits; i += 32) s.merge(parts[(i64)i * results + k], told);
  }
  for (int m = 1; m < 32; m <<= 1) combine(s, m, lane, told);
  if (lane == 0 && k < results) out[k] = down<OUT>(s.result(told));
}
