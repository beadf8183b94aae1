// Additions at computed positions, without atomics: the same bits each time. TYPE is the elements'
// type, ACC the one to add in, INDEX i64 or i32. A row is what lies along the indexed dimension;
// the `sizes` are those of all others.

// A thread for each row, which adds its elements in order.
extern "C" __global__ void scatter_serial(TYPE* out, const INDEX* index, const TYPE* source,
                                          i64 rows, i64 n, i64 size, i64 out_step, i64 index_step,
                                          i64 source_step, u64* faults, int op, int ndim,
                                          Dims sizes, Dims out_strides, Dims index_strides,
                                          Dims source_strides) {
  i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (k >= rows) return;
  TYPE* y = out + place(k, ndim, sizes, out_strides);
  const INDEX* at = index + place(k, ndim, sizes, index_strides);
  const TYPE* x = source + place(k, ndim, sizes, source_strides);
  for (i64 i = 0; i < n; i++) {
    i64 j = (i64)at[i * index_step];
    if (j < 0 || j >= size) {
      report_fault(faults, op, j, size);
    } else {
      y[j * out_step] = down<TYPE>((ACC)up(y[j * out_step]) + (ACC)up(x[i * source_step]));
    }
  }
}

// The same where each row's indices have been sorted, with the positions they had: the thread at
// the first of equal ones adds all their elements, in order.
extern "C" __global__ void scatter_sorted(TYPE* out, const INDEX* sorted, const i64* position,
                                          const TYPE* source, i64 rows, i64 n, i64 size,
                                          i64 out_step, i64 index_step, i64 source_step,
                                          u64* faults, int op, int ndim, Dims sizes,
                                          Dims out_strides, Dims index_strides,
                                          Dims source_strides) {
  i64 all = (i64)gridDim.x * blockDim.x;
  for (i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x; k < rows * n; k += all) {
    i64 i = k / rows, row = k - i * rows;
    i64 first = place(row, ndim, sizes, index_strides);
    const INDEX* at = sorted + first;
    i64 j = (i64)at[i * index_step];
    if (i > 0 && (i64)at[(i - 1) * index_step] == j) continue;
    if (j < 0 || j >= size) {
      report_fault(faults, op, j, size);
      continue;
    }
    const TYPE* x = source + place(row, ndim, sizes, source_strides);
    TYPE* y = out + place(row, ndim, sizes, out_strides) + j * out_step;
    ACC sum = (ACC)up(*y);
    for (i64 p = i; p < n && (i64)at[p * index_step] == j; p++) {
      sum += (ACC)up(x[position[first + p * index_step] * source_step]);
    }
    *y = down<TYPE>(sum);
  }
}
