package dev.weft.tensor.cuda;

import com.google.common.base.Splitter;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.op.Attrs;
import java.util.Arrays;

/**
 * An elementwise operator on a device, the counterpart of the CPU's {@code Elementwise}. For each
 * combination of dtypes that occurs, {@code elementwise.cu} is compiled once. Thread-safe.
 */
public final class CudaElementwise {
  private static final int THREADS = 256;
  private static final int MAX_ARITY = 3;
  // From here on a transposed input is worth a copy: its reads would touch a sector each.
  private static final long COPY_TRANSPOSED = 1 << 16;

  private final String function;
  private final boolean bounds;
  private volatile Variant[] variants = new Variant[0];

  private CudaElementwise(String function) {
    this.function = function;
    this.bounds = function.equals("Clamp");
  }

  /**
   * The operator of a name of the catalogue; that in place is the same one.
   *
   * @param name such as {@code add_scalar_}, whose struct is {@code AddScalar}
   */
  public static CudaElementwise of(String name) {
    StringBuilder s = new StringBuilder();
    for (String word : Splitter.on('_').omitEmptyStrings().split(name)) {
      s.append(Character.toUpperCase(word.charAt(0))).append(word, 1, word.length());
    }
    return new CudaElementwise(s.toString());
  }

  /** The kernels for one combination of dtypes. */
  private static final class Variant {
    final int key;
    final int width;
    final CudaKernel denseVector;
    final CudaKernel denseSingle;
    final CudaKernel walkVector;
    final CudaKernel walkSingle;

    Variant(int key, int width, String[] defines) {
      this.key = key;
      this.width = width;
      this.denseVector = part(0, defines).kernel("dense_vector");
      this.walkVector = part(1, defines).kernel("walk_vector");
      this.denseSingle = part(2, defines).kernel("dense_single");
      this.walkSingle = part(2, defines).kernel("walk_single");
    }

    private static KernelModule part(int part, String[] defines) {
      String[] all = Arrays.copyOf(defines, defines.length + 1);
      all[defines.length] = "PART=" + part;
      return KernelModule.of("elementwise.cu", all);
    }
  }

  /**
   * Computes {@code out} from inputs that broadcast to its shape. Attributes 0 and 1, where they
   * are numbers, go to the operator: 0 counts as 1 where it is absent, for clamping both count as
   * no bound.
   *
   * @param dtype the dtype to compute in
   * @throws IllegalArgumentException if elements of {@code out} share memory
   */
  public void run(DType dtype, StridedTensor[] in, StridedTensor out, Attrs attrs) {
    long n = out.numel();
    if (n == 0) {
      return;
    }
    Variant v = variant(dtype, in, out);
    int uniform = dense(in, out, n);
    if (uniform >= 0) {
      runDense(v, dtype, in, out, n, uniform, attrs);
      return;
    }
    CudaMoves.requireNoOverlap(out);
    try (CudaTemporaries temporaries = new CudaTemporaries(out.device())) {
      StridedTensor[] inputs = in;
      for (int i = 0; i < in.length; i++) {
        if (overwritten(in[i], out) || (out.isContiguous() && transposed(in[i], n))) {
          inputs = inputs == in ? in.clone() : inputs;
          inputs[i] = temporaries.packed(in[i], in[i].dtype());
        }
      }
      uniform = dense(inputs, out, n);
      if (uniform >= 0) {
        runDense(v, dtype, inputs, out, n, uniform, attrs);
      } else {
        walk(v, dtype, inputs, out, attrs);
      }
    }
  }

  /** Which inputs are one element for all, as bits; -1 where one has other strides. */
  private static int dense(StridedTensor[] in, StridedTensor out, long n) {
    if (!out.isContiguous()) {
      return -1;
    }
    int uniform = 0;
    for (int i = 0; i < in.length; i++) {
      StridedTensor t = in[i];
      if (t == out) {
        continue;
      }
      if (!t.isContiguous() || (t.storage() == out.storage() && overwritten(t, out))) {
        return -1;
      }
      if (t.shape() != out.shape()) {
        long m = t.numel();
        if (m == 1 && n != 1) {
          uniform |= 1 << i;
        } else if (m != n) {
          return -1;
        }
      }
    }
    return uniform;
  }

  /** Whether writing the output could change an input before it is read. */
  private static boolean overwritten(StridedTensor in, StridedTensor out) {
    return in != out
        && in.storage() == out.storage()
        && !(in.offset() == out.offset()
            && in.dtype() == out.dtype()
            && Arrays.equals(in.shape(), out.shape())
            && Arrays.equals(in.strides(), out.strides()));
  }

  private static boolean transposed(StridedTensor t, long n) {
    int last = t.ndim() - 1;
    if (n < COPY_TRANSPOSED || t.isContiguous() || t.numel() != n) {
      return false;
    }
    while (last > 0 && t.shape()[last] == 1) {
      last--;
    }
    return t.strides()[last] > 1;
  }

  private void runDense(
      Variant v,
      DType dtype,
      StridedTensor[] in,
      StridedTensor out,
      long n,
      int uniform,
      Attrs attrs) {
    int device = out.device().index();
    gates(in);
    Launch launch = Launch.on(device);
    boolean vector = addresses(launch, v, in, out, uniform);
    launch.int64(n).int32(uniform);
    numbers(launch, dtype, attrs);
    long items = vector ? (n + v.width - 1) / v.width : n;
    launch.run(
        vector ? v.denseVector : v.denseSingle, Grids.blocks(device, items, THREADS), THREADS);
  }

  /** Lets pending data arrive first: what that takes may launch kernels of its own. */
  private static void gates(StridedTensor[] in) {
    for (StridedTensor t : in) {
      long unused = t.dataAddress();
    }
  }

  /** Adds the four addresses; true where all allow vectors. */
  private static boolean addresses(
      Launch launch, Variant v, StridedTensor[] in, StridedTensor out, int uniform) {
    long misfit = 0;
    long address = 0;
    for (int i = 0; i < MAX_ARITY; i++) {
      if (i < in.length) {
        address = in[i].dataAddress();
        if ((uniform & 1 << i) == 0) {
          misfit |= address & (v.width * in[i].dtype().byteSize() - 1);
        }
      }
      launch.int64(address);
    }
    address = out.dataAddress();
    launch.int64(address);
    misfit |= address & (v.width * out.dtype().byteSize() - 1);
    return misfit == 0;
  }

  private void numbers(Launch launch, DType dtype, Attrs a) {
    boolean s = a.size() > 0 && a.get(0) instanceof Number;
    boolean t = a.size() > 1 && a.get(1) instanceof Number;
    if (!dtype.isFloatingPoint()) {
      launch
          .int64(s ? a.longAt(0) : bounds ? Long.MIN_VALUE : 1)
          .int64(t ? a.longAt(1) : bounds ? Long.MAX_VALUE : 0);
      return;
    }
    double first = s ? a.doubleAt(0) : bounds ? Double.NEGATIVE_INFINITY : 1;
    double second = t ? a.doubleAt(1) : bounds ? Double.POSITIVE_INFINITY : 0;
    if (dtype == DType.FLOAT64) {
      launch.float64(first).float64(second);
    } else {
      launch.float32((float) first).float32((float) second);
    }
  }

  private void walk(Variant v, DType dtype, StridedTensor[] in, StridedTensor out, Attrs attrs) {
    int arity = in.length;
    StridedTensor[] all = Arrays.copyOf(in, arity + 1);
    all[arity] = out;
    Geometry g = Geometry.of(out.shape(), all);
    int device = out.device().index();
    int uniform = 0;
    boolean vector = g.ndim > 0 && g.sizes[0] % v.width == 0 && v.width > 1;
    for (int i = 0; i <= arity && vector; i++) {
      long inner = g.strides[i][0];
      vector = inner == 1 || (inner == 0 && i < arity);
      if (inner == 0) {
        uniform |= 1 << i;
        continue;
      }
      for (int d = 1; d < g.ndim; d++) {
        vector &= g.strides[i][d] % v.width == 0;
      }
    }
    gates(in);
    Launch launch = Launch.on(device);
    vector &= addresses(launch, v, in, out, uniform);
    long n = g.numel;
    if (vector) {
      n /= v.width;
      g.sizes[0] /= v.width;
      for (int i = 0; i <= arity; i++) {
        g.strides[i][0] *= v.width;
      }
    }
    launch.int64(n).int32(g.ndim).int32(vector ? uniform : 0);
    numbers(launch, dtype, attrs);
    launch.align(8);
    g.addSizes(launch);
    for (int i = 0; i < MAX_ARITY; i++) {
      g.addStrides(launch, Math.min(i, arity - 1));
    }
    g.addStrides(launch, arity);
    launch.run(vector ? v.walkVector : v.walkSingle, Grids.blocks(device, n, THREADS), THREADS);
  }

  @SuppressWarnings("EnumOrdinal") // a key within this run
  private Variant variant(DType dtype, StridedTensor[] in, StridedTensor out) {
    int compute = !dtype.isFloatingPoint() ? 0 : dtype == DType.FLOAT64 ? 1 : 2;
    int key = compute << 4 | out.dtype().ordinal();
    for (StridedTensor t : in) {
      key = key << 4 | t.dtype().ordinal();
    }
    for (Variant v : variants) {
      if (v.key == key) {
        return v;
      }
    }
    return add(key, dtype, in, out);
  }

  private synchronized Variant add(int key, DType dtype, StridedTensor[] in, StridedTensor out) {
    for (Variant v : variants) {
      if (v.key == key) {
        return v;
      }
    }
    int widest = out.dtype().byteSize();
    for (StridedTensor t : in) {
      widest = Math.max(widest, t.dtype().byteSize());
    }
    Variant made = new Variant(key, 16 / widest, defines(dtype, in, out));
    Variant[] more = Arrays.copyOf(variants, variants.length + 1);
    more[variants.length] = made;
    variants = more;
    return made;
  }

  private String[] defines(DType dtype, StridedTensor[] in, StridedTensor out) {
    String[] types = new String[MAX_ARITY];
    for (int i = 0; i < MAX_ARITY; i++) {
      types[i] = CudaTypes.of(in[i < in.length ? i : 0].dtype());
    }
    return new String[] {
      "OP=" + function,
      "ARITY=" + in.length,
      "IN0=" + types[0],
      "IN1=" + types[1],
      "IN2=" + types[2],
      "OUT=" + CudaTypes.of(out.dtype()),
      "ACC=" + CudaTypes.accumulator(dtype)
    };
  }

  @Override
  public String toString() {
    return "CUDA operator " + function;
  }
}
