// Reads at computed positions. UNIT is a type of the elements' size, or of several elements that
// stay together; INDEX is i64 or i32.
struct alignas(16) u128 { u32 a, b, c, d; };

// out[k] = in[its place + index[its place] * step]; in's strides are 0 along the indexed dimension.
extern "C" __global__ void gather(const UNIT* in, const INDEX* index, UNIT* out, i64 n, i64 size,
                                  i64 step, u64* faults, int op, int ndim, Dims sizes,
                                  Dims in_strides, Dims index_strides) {
  i64 all = (i64)gridDim.x * blockDim.x;
  for (i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += all) {
    i64 j = (i64)index[place(k, ndim, sizes, index_strides)];
    UNIT x = {};
    if (j < 0 || j >= size) {
      report_fault(faults, op, j, size);
    } else {
      x = in[place(k, ndim, sizes, in_strides) + j * step];
    }
    out[k] = x;
  }
}

// Zeros above the diagonal where `lower`, else below; a contiguous result.
extern "C" __global__ void triangle(const UNIT* in, UNIT* out, i64 n, i64 rows, i64 columns,
                                    i64 diagonal, int lower, int ndim, Dims sizes, Dims strides) {
  i64 all = (i64)gridDim.x * blockDim.x;
  for (i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x; k < n; k += all) {
    i64 r = k / columns, c = k - r * columns;
    i64 from_diagonal = c - r % rows - diagonal;
    UNIT x = {};
    if (lower ? from_diagonal <= 0 : from_diagonal >= 0) x = in[place(k, ndim, sizes, strides)];
    out[k] = x;
  }
}
