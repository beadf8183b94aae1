package dev.weft.tensor.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Generator;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Catalogue;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Indexing;
import dev.weft.tensor.op.Op;
import dev.weft.tensor.op.Random;
import dev.weft.tensor.op.Views;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Operators on the GPU give what they give on the CPU: all dtypes, layouts and odd sizes. */
@CudaTest
class CudaOpsTest {
  private static final long[][] SHAPES = {
    {}, {1}, {7}, {0, 3}, {5, 13}, {33, 65}, {3, 1, 17}, {64, 128}, {2, 3, 4, 5}
  };
  private static final DType[] FLOATS = {
    DType.FLOAT64, DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16
  };

  private final Generator generator = new Generator(11);
  private TensorScope scope;

  @BeforeEach
  void open() {
    scope = TensorScope.open();
  }

  @AfterEach
  void close() {
    scope.close();
  }

  // ---- inputs ----

  private Tensor random(DType dtype, long... shape) {
    if (dtype.isFloatingPoint()) {
      return Casts.to(Random.randn(generator, DType.FLOAT64, shape), dtype);
    }
    long low = dtype == DType.UINT8 || dtype == DType.BOOL ? 0 : -5;
    return Casts.to(Random.randint(generator, low, dtype == DType.BOOL ? 2 : 6, shape), dtype);
  }

  /** Uniform in [0.25, 2): where logarithms and roots exist. */
  private Tensor positive(DType dtype, long... shape) {
    return dtype.isFloatingPoint()
        ? Casts.to(Random.uniform(Tensors.empty(DType.FLOAT64, shape), 0.25, 2, generator), dtype)
        : Casts.to(Random.randint(generator, 1, 6, shape), dtype);
  }

  /** The same values and shape in other layouts: transposed, with gaps, at an odd offset. */
  private List<Tensor> layouts(Tensor t) {
    List<Tensor> all = new ArrayList<>(List.of(t));
    if (t.ndim() >= 2) {
      all.add(t.transpose(0, 1).contiguous().transpose(0, 1));
      all.add(t.transpose(0, -1).contiguous().transpose(0, -1));
    }
    if (t.ndim() >= 1) {
      long[] shape = t.shape().clone();
      shape[shape.length - 1] = shape[shape.length - 1] * 2 + 3;
      StridedTensor wide = Tensors.empty(t.dtype(), shape);
      InPlace.fill(wide, 1);
      Tensor gaps = Views.slice(wide, -1, 3, shape[shape.length - 1], 2);
      InPlace.copy(gaps, t);
      all.add(gaps);
      shape[shape.length - 1] = t.size(-1) + 1;
      StridedTensor longer = Tensors.empty(t.dtype(), shape);
      InPlace.fill(longer, 1);
      Tensor shifted = Views.narrow(longer, -1, 1, t.size(-1));
      InPlace.copy(shifted, t);
      all.add(shifted);
    }
    return all;
  }

  private static double tolerance(DType dtype) {
    return switch (dtype) {
      case FLOAT64 -> 1e-12;
      case FLOAT16 -> 2e-3;
      case BFLOAT16 -> 1.6e-2;
      default -> 1e-5;
    };
  }

  /** Whether the CPU takes these inputs; where it refuses them, there is nothing to compare. */
  private static boolean isLegal(String name, Attrs attrs, Tensor... in) {
    try {
      Op op = Catalogue.get(name);
      Tensor[] mine = in.clone();
      if (op.form() == Op.Form.IN_PLACE) {
        mine[0] = mine[0].copy();
      }
      Dispatcher.callAll(op, attrs, mine);
      return true;
    } catch (IllegalArgumentException | UnsupportedOperationException e) {
      return false;
    }
  }

  private static int check(String name, Attrs attrs, Tensor... in) {
    if (!isLegal(name, attrs, in)) {
      return 0;
    }
    DType least = DType.FLOAT64;
    for (Tensor t : in) {
      if (tolerance(t.dtype()) > tolerance(least)) {
        least = t.dtype();
      }
    }
    AgainstCpu.check(name, attrs, tolerance(least), in);
    return 1;
  }

  private static boolean isPositive(String name) {
    return name.matches("log|log1p|sqrt|rsqrt|reciprocal|pow.*|r?div_scalar|addcdiv_?|div_?");
  }

  private Tensor input(String name, DType dtype, long... shape) {
    return isPositive(name) ? positive(dtype, shape) : random(dtype, shape);
  }

  // ---- elementwise ----

  @ParameterizedTest
  @ValueSource(
      strings = {
        "neg",
        "abs",
        "sign",
        "floor",
        "ceil",
        "round",
        "square",
        "exp",
        "log",
        "log1p",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "sin",
        "cos",
        "erf",
        "isnan",
        "logical_not",
        "sigmoid",
        "tanh",
        "relu",
        "silu",
        "gelu",
        "relu_"
      })
  void unary(String name) {
    int checked = 0;
    for (DType dtype : DType.values()) {
      for (long[] shape : SHAPES) {
        for (Tensor x : layouts(input(name, dtype, shape))) {
          checked += check(name, Attrs.NONE, x);
        }
      }
    }
    assertThat(checked).isPositive();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "neg",
        "abs",
        "sign",
        "floor",
        "ceil",
        "round",
        "square",
        "exp",
        "log",
        "log1p",
        "sqrt",
        "rsqrt",
        "reciprocal",
        "erf",
        "isnan",
        "logical_not",
        "sigmoid",
        "tanh",
        "relu",
        "silu",
        "gelu"
      })
  void unaryOfSpecialValues(String name) {
    double inf = Double.POSITIVE_INFINITY;
    double[] v = {Double.NaN, inf, -inf, 0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 100, -100};
    for (DType dtype : FLOATS) {
      check(name, Attrs.NONE, Casts.to(Tensor.of(v, v.length), dtype));
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "add",
        "sub",
        "mul",
        "div",
        "pow",
        "maximum",
        "minimum",
        "atan2",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "logical_and",
        "logical_or",
        "logical_xor",
        "relu_backward",
        "leaky_relu_backward",
        "sigmoid_backward",
        "tanh_backward",
        "silu_backward",
        "gelu_backward",
        "add_",
        "sub_",
        "mul_",
        "div_",
        "lerp_scalar",
        "lerp_scalar_"
      })
  void binary(String name) {
    boolean number = name.matches("lerp_scalar_?|leaky_relu_backward");
    Attrs attrs = number ? Attrs.of(0.3) : Attrs.NONE;
    int checked = 0;
    for (DType dtype : DType.values()) {
      for (long[] shape : SHAPES) {
        Tensor y = input(name, dtype, shape);
        for (Tensor x : layouts(input(name, dtype, shape))) {
          checked += check(name, attrs, x, y);
          checked += check(name, attrs, y, x);
        }
      }
      for (long[] other : new long[][] {{}, {1}, {65}, {33, 1}, {1, 65}}) {
        checked += check(name, attrs, input(name, dtype, 33, 65), input(name, dtype, other));
        checked += check(name, attrs, input(name, dtype, other), input(name, dtype, 33, 65));
      }
      for (long[] other : new long[][] {{128}, {64, 1}}) {
        checked += check(name, attrs, input(name, dtype, 64, 128), input(name, dtype, other));
      }
    }
    assertThat(checked).isPositive();
  }

  @ParameterizedTest
  @ValueSource(strings = {"add", "div", "maximum", "lt", "add_"})
  void tensorsOfDifferentDTypes(String name) {
    int checked = 0;
    for (DType dtype : DType.values()) {
      for (DType with : new DType[] {DType.FLOAT32, DType.INT64, DType.BFLOAT16}) {
        checked += check(name, Attrs.NONE, input(name, dtype, 5, 16), input(name, with, 5, 16));
        checked += check(name, Attrs.NONE, input(name, dtype, 5, 13), input(name, with));
        checked += check(name, Attrs.NONE, input(name, dtype, 5, 16), input(name, with, 5, 1));
      }
    }
    assertThat(checked).isPositive();
  }

  @ParameterizedTest
  @ValueSource(strings = {"add", "sub", "add_", "sub_", "addcmul", "addcdiv", "addcmul_"})
  void binaryAndTernaryWithAFactor(String name) {
    for (DType dtype : DType.values()) {
      Number alpha = dtype.isFloatingPoint() ? (Number) 0.75 : (Number) 3L;
      Tensor x = input(name, dtype, 33, 65);
      Tensor y = positive(dtype, 33, 65);
      if (name.startsWith("addc")) {
        check(name, Attrs.of(alpha), x, y, positive(dtype, 65));
      } else {
        check(name, Attrs.of(alpha), x, y);
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "add_scalar,3",
    "sub_scalar,3",
    "rsub_scalar,3",
    "mul_scalar,3",
    "div_scalar,3",
    "rdiv_scalar,3",
    "pow_scalar,3",
    "pow_scalar,2",
    "pow_scalar,1",
    "eq_scalar,1",
    "ne_scalar,1",
    "lt_scalar,1",
    "le_scalar,1",
    "gt_scalar,1",
    "ge_scalar,1",
    "add_scalar_,3",
    "sub_scalar_,3",
    "mul_scalar_,3",
    "div_scalar_,3",
    "leaky_relu,0.1",
    "add_scalar,0.3",
    "mul_scalar,0.3",
    "pow_scalar,0.5",
    "pow_scalar,-1.5",
    "gt_scalar,0.5",
    "mul_scalar_,0.3"
  })
  void withANumber(String name, String value) {
    Number v = value.contains(".") ? (Number) Double.valueOf(value) : (Number) Long.valueOf(value);
    int checked = 0;
    for (DType dtype : DType.values()) {
      for (Tensor x : layouts(input(name, dtype, 33, 65))) {
        checked += check(name, Attrs.of(v), x);
      }
      checked += check(name, Attrs.of(v), input(name, dtype));
    }
    assertThat(checked).isPositive();
  }

  @Test
  void clamping() {
    for (DType dtype : DType.values()) {
      for (Tensor x : layouts(random(dtype, 33, 65))) {
        check("clamp", Attrs.of(-1, 2), x);
        check("clamp", Attrs.of(null, 2), x);
        check("clamp", Attrs.of(-0.5, null), x);
        check("clamp_", Attrs.of(-1, 2), x);
      }
    }
    Tensor special = Tensor.of(new double[] {Double.NaN, Double.NEGATIVE_INFINITY, 3}, 3);
    check("clamp", Attrs.of(-1, 2), special);
    check("clamp", Attrs.of(2, -1), special);
  }

  @Test
  void choices() {
    for (DType dtype : DType.values()) {
      Tensor c = random(DType.BOOL, 33, 65);
      for (Tensor x : layouts(random(dtype, 33, 65))) {
        check("where", Attrs.NONE, c, x, random(dtype, 65));
        check("masked_fill", Attrs.of(1), x, c);
        check("masked_fill", Attrs.of(1), x, random(DType.BOOL, 33, 1));
        check("masked_fill_", Attrs.of(1), x, c);
      }
      check("where", Attrs.NONE, c, random(dtype), random(DType.FLOAT32, 33, 1));
    }
    check(
        "masked_fill",
        Attrs.of(Double.NEGATIVE_INFINITY),
        random(DType.BFLOAT16, 9, 9),
        random(DType.BOOL, 9, 9));
  }

  @Test
  void geluByTanhAndItsGradient() {
    for (DType dtype : FLOATS) {
      check("gelu", Attrs.of("tanh"), random(dtype, 33, 65));
      check("gelu_backward", Attrs.of("tanh"), random(dtype, 33, 65), random(dtype, 33, 65));
    }
  }

  @Test
  void lerpByATensor() {
    for (DType dtype : FLOATS) {
      check("lerp", Attrs.NONE, random(dtype, 33, 65), random(dtype, 65), positive(dtype, 33, 1));
    }
  }

  @Test
  void inPlaceWhereTheOperandOverlapsTheTarget() {
    Tensor gpu = random(DType.FLOAT32, 40).to(AgainstCpu.GPU);
    Tensor cpu = gpu.to(Device.CPU);
    for (Tensor t : new Tensor[] {gpu, cpu}) {
      InPlace.add(Views.narrow(t, 0, 1, 30), Views.narrow(t, 0, 0, 30));
      Tensor square = Views.narrow(t.reshape(5, 8), 1, 0, 5);
      InPlace.copy(square, square.transpose(0, 1));
    }
    AgainstCpu.close("overlapping", cpu, gpu, 1e-6);
    assertThatThrownBy(() -> InPlace.add(Views.expand(Views.narrow(gpu, 0, 0, 1), 4), 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("clone it first");
  }

  @Test
  void elementsBeyondTheReachOfAnIntegerOf32Bits() {
    long n = (1L << 31) + 17;
    Tensor big = Tensors.empty(DType.INT8, AgainstCpu.GPU, n);
    InPlace.fill(big, 3);
    Tensor more = big.add(1);
    assertThat(Views.narrow(more, 0, n - 3, 3).to(Device.CPU).toLongArray())
        .containsExactly(4, 4, 4);
    assertThat(more.sum().item()).isEqualTo(4.0 * n);
    big.close();
    more.close();
  }

  // ---- creation and moves ----

  @Test
  void creation() {
    for (DType dtype : DType.values()) {
      for (long[] shape : SHAPES) {
        check("full_like", Attrs.of(1, null), random(dtype, shape));
        check("full_like", Attrs.of(0.5, DType.FLOAT32), random(dtype, shape));
        for (Tensor x : layouts(random(dtype, shape))) {
          check("fill_", Attrs.of(1), x);
          check("fill_", Attrs.of(2.5), x);
          check("zero_", Attrs.NONE, x);
        }
      }
      check("arange_", Attrs.of(2, 3), random(dtype, 29));
      check("arange_", Attrs.of(0.1, 0.3), random(dtype, 29));
    }
  }

  @Test
  void copies() {
    for (DType from : DType.values()) {
      for (DType to : DType.values()) {
        check("copy_", Attrs.NONE, random(to, 33, 65), positive(from, 65));
        check("copy_", Attrs.NONE, random(to, 33, 65), positive(from, 33, 65));
        check("copy_", Attrs.NONE, random(to, 33, 65).transpose(0, 1), positive(from, 65, 33));
      }
    }
  }

  @Test
  void joinsAndSlices() {
    for (DType dtype : DType.values()) {
      Tensor a = random(dtype, 5, 13);
      Tensor b = random(dtype, 4, 13);
      check("cat", Attrs.of(0), a, b, random(dtype, 0));
      check("cat", Attrs.of(1), a, random(dtype, 7, 5).transpose(0, 1), random(dtype, 5, 1));
      check("cat", Attrs.of(0), a, random(DType.FLOAT32, 2, 13));
      check("stack", Attrs.of(0), a, a);
      check("stack", Attrs.of(2), a, random(dtype, 13, 5).transpose(0, 1));
      Attrs slice = Attrs.of(new long[] {5, 20}, 1, 2L, 19L, 3L);
      check("slice_backward", slice, random(dtype, 5, 6));
    }
  }

  @Test
  void rearrangements() {
    for (DType dtype : DType.values()) {
      for (Tensor x : layouts(random(dtype, 3, 5, 7))) {
        check("flip", Attrs.of(new int[] {0}), x);
        check("flip", Attrs.of(new int[] {0, 2}), x);
        check("flip", Attrs.of(new int[] {}), x);
        check("roll", Attrs.of(new int[] {1, 2}, new long[] {2, -3}), x);
        check("repeat", Attrs.of(new long[] {2, 3, 1, 2}), x);
      }
      check("repeat", Attrs.of(new long[] {2, 1, 2, 1, 2, 2}), random(dtype, 1, 2, 3, 2));
      check("repeat", Attrs.of(new long[] {0, 2}), random(dtype, 3, 4));
      check("flip", Attrs.of(new int[] {0}), random(dtype, 0, 4));
    }
  }

  // ---- reductions ----

  private static final int[][] DIMS = {{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}};

  @ParameterizedTest
  @ValueSource(
      strings = {
        "sum",
        "mean",
        "prod",
        "all",
        "any",
        "amax",
        "amin",
        "logsumexp",
        "argmax",
        "argmin",
        "max",
        "min",
        "var",
        "std",
        "vector_norm"
      })
  void reductionsOverAnyDimensions(String name) {
    int checked = 0;
    boolean one = name.equals("max") || name.equals("min");
    for (DType dtype : DType.values()) {
      for (long[] shape : new long[][] {{3, 17, 40}, {2, 300, 5}, {1, 1, 9}}) {
        Tensor x = name.equals("prod") ? positive(dtype, 3, 4, 5) : random(dtype, shape);
        for (Tensor t : layouts(x)) {
          for (int[] dims : DIMS) {
            if (!one || dims.length == 1) {
              checked += check(name, Attrs.of(dims, true, 1.0), t);
              checked += check(name, Attrs.of(dims, false, 0.0), t);
            }
          }
        }
      }
      checked += check(name, Attrs.of(new int[] {}, false, 0.0), random(dtype));
      checked += check(name, Attrs.of(new int[] {0}, false, 1.0), random(dtype, 0, 4));
      checked += check(name, Attrs.of(new int[] {0}, false, 1.0), random(dtype, 4, 0));
    }
    assertThat(checked).isPositive();
  }

  @ParameterizedTest
  @ValueSource(strings = {"sum", "mean", "amax", "argmin", "logsumexp", "var", "vector_norm"})
  void largeReductions(String name) {
    for (DType dtype : new DType[] {DType.FLOAT32, DType.BFLOAT16, DType.FLOAT64}) {
      Tensor tall = random(dtype, 20_001, 33);
      Tensor wide = random(dtype, 7, 100_003);
      for (int[] dims : new int[][] {{0}, {1}, {0, 1}}) {
        check(name, Attrs.of(dims, false, 2.0), tall);
        check(name, Attrs.of(dims, false, 2.0), wide);
        check(name, Attrs.of(dims, false, 2.0), tall.transpose(0, 1));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(doubles = {0, 1, 2, 3, 0.5, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY})
  void norms(double p) {
    for (DType dtype : FLOATS) {
      for (int[] dims : new int[][] {{0}, {1}, {0, 1}}) {
        check("vector_norm", Attrs.of(dims, false, p), random(dtype, 33, 65));
      }
    }
  }

  @Test
  void reductionsOfSpecialValues() {
    double inf = Double.POSITIVE_INFINITY;
    double[] v = {1, Double.NaN, 3, inf, 5, -inf, -inf, -inf, -inf, 7, 7, inf, 0, 0, -0.0};
    Attrs rows = Attrs.of(new int[] {1}, false, 2.0);
    Attrs columns = Attrs.of(new int[] {0}, false, 2.0);
    for (DType dtype : FLOATS) {
      Tensor x = Casts.to(Tensor.of(v, 5, 3), dtype);
      for (String name :
          new String[] {
            "sum",
            "prod",
            "all",
            "any",
            "amax",
            "amin",
            "argmax",
            "argmin",
            "logsumexp",
            "vector_norm"
          }) {
        check(name, rows, x);
        check(name, columns, x);
      }
    }
  }

  @Test
  void sumsRepeatBitByBit() {
    Tensor x = random(DType.FLOAT32, 1 << 20).to(AgainstCpu.GPU);
    double first = x.sum().item();
    for (int i = 0; i < 5; i++) {
      assertThat(x.sum().item()).isEqualTo(first);
    }
  }

  @Test
  void sumToSize() {
    for (DType dtype : DType.values()) {
      check("sum_to_size", Attrs.of(new long[] {65}), random(dtype, 33, 65));
      check("sum_to_size", Attrs.of(new long[] {33, 1}), random(dtype, 33, 65));
      check("sum_to_size", Attrs.of(new long[] {}), random(dtype, 33, 65));
      check("sum_to_size", Attrs.of(new long[] {4, 1, 5}), random(dtype, 2, 4, 3, 5));
    }
  }

  @Test
  void gradientOfProducts() {
    for (DType dtype : FLOATS) {
      Tensor x = positive(dtype, 3, 4, 5);
      check("prod_backward", Attrs.of(new int[] {1}, false), random(dtype, 3, 5), x);
      check("prod_backward", Attrs.of(new int[] {0, 2}, true), random(dtype, 1, 4, 1), x);
      check("prod_backward", Attrs.of(new int[] {}, false), random(dtype), x);
    }
  }

  @Test
  void runningSums() {
    for (DType dtype : DType.values()) {
      for (Tensor x : layouts(random(dtype, 33, 65))) {
        for (boolean reverse : new boolean[] {false, true}) {
          check("cumsum", Attrs.of(0, reverse), x);
          check("cumsum", Attrs.of(1, reverse), x);
        }
      }
      check("cumsum", Attrs.of(0, false), random(dtype, 5000));
      check("cumsum", Attrs.of(0, false), random(dtype));
      check("cumsum", Attrs.of(1, true), random(dtype, 3, 40, 300));
    }
  }

  // ---- positions ----

  @Test
  void gathers() {
    for (DType dtype : DType.values()) {
      for (DType at : new DType[] {DType.INT64, DType.INT32}) {
        Tensor index = Casts.to(Random.randint(generator, 0, 9, 6, 13), at);
        for (Tensor x : layouts(random(dtype, 9, 13))) {
          check("gather", Attrs.of(0), x, index);
          check("gather", Attrs.of(0), x, index.transpose(0, 1).contiguous().transpose(0, 1));
        }
        Tensor vector = Casts.to(Random.randint(generator, 0, 9, 21), at);
        for (long[] shape : new long[][] {{9, 64}, {9, 13}, {9, 3, 8}, {9}}) {
          Tensor x = random(dtype, shape);
          check("index_select", Attrs.of(0), x, vector);
          if (x.ndim() > 1) {
            check("index_select", Attrs.of(1), x.transpose(0, 1), vector);
          }
        }
        check("index_select", Attrs.of(0), random(dtype, 9, 4), Views.narrow(vector, 0, 0, 0));
      }
    }
    Tensor one = Tensor.of(new long[] {0}).reshape();
    check("gather", Attrs.of(0), random(DType.FLOAT32), one);
  }

  @Test
  void additionsAtPositions() {
    for (DType dtype : DType.values()) {
      for (long n : new long[] {6, 300}) {
        Tensor index = Random.randint(generator, 0, 9, n, 13);
        Tensor source = random(dtype, n, 13);
        // Few equal positions in the narrow types, which the CPU rounds after each addition.
        boolean exact = !dtype.isFloatingPoint() || dtype.byteSize() > 2;
        if (exact || n == 6) {
          check("scatter_add", Attrs.of(0), random(dtype, 9, 13), index, source);
          check("gather_backward", Attrs.of(new long[] {9, 13}, 0), source, index);
          Tensor turned = index.transpose(0, 1);
          check("scatter_add", Attrs.of(1), random(dtype, 13, 9), turned, source.transpose(0, 1));
          Tensor vector = Random.randint(generator, 0, 9, n);
          check("index_select_backward", Attrs.of(new long[] {9, 13}, 0), source, vector);
          Tensor across = random(dtype, 4, n, 5);
          check("index_select_backward", Attrs.of(new long[] {4, 9, 5}, 1), across, vector);
        }
      }
    }
  }

  @Test
  void aPositionOutOfRangeIsThrownWhereTheHostWaits() {
    Tensor x = random(DType.FLOAT32, 4, 5).to(AgainstCpu.GPU);
    Tensor index = Tensor.of(new long[] {0, 4}).to(AgainstCpu.GPU);
    Tensor unused = Indexing.indexSelect(x, 0, index);
    assertThatThrownBy(Cuda::synchronize)
        .isInstanceOf(IndexOutOfBoundsException.class)
        .hasMessageContaining("index_select: index 4 is out of range; expected [0, 3]");
    // Told once; the device goes on working.
    assertThat(x.sum().item()).isFinite();
  }

  @Test
  void triangles() {
    for (DType dtype : DType.values()) {
      for (Tensor x : layouts(random(dtype, 3, 7, 9))) {
        for (long diagonal : new long[] {0, 2, -3, 20, -20}) {
          check("tril", Attrs.of(diagonal), x);
          check("triu", Attrs.of(diagonal), x);
        }
      }
    }
  }

  // ---- order ----

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 5, 1000, 2048, 2049, 5000, 70_000})
  void sorting(long n) {
    for (DType dtype : DType.values()) {
      for (boolean descending : new boolean[] {false, true}) {
        check("sort", Attrs.of(1, descending), random(dtype, 3, n));
        check("sort", Attrs.of(0, descending), random(dtype, n, 2));
        check("topk", Attrs.of(1, Math.min(4, n), descending), random(dtype, 3, n));
      }
    }
  }

  @Test
  void sortingSpecialValues() {
    double inf = Double.POSITIVE_INFINITY;
    double[] v = {1, Double.NaN, -0.0, 0.0, inf, Double.NaN, -inf, -1, 0.0, -0.0};
    for (DType dtype : FLOATS) {
      check("sort", Attrs.of(0, false), Casts.to(Tensor.of(v, v.length), dtype));
      check("sort", Attrs.of(0, true), Casts.to(Tensor.of(v, v.length), dtype));
    }
    check("sort", Attrs.of(0, true), random(DType.FLOAT32));
    check("sort", Attrs.of(1, false), random(DType.FLOAT32, 4, 0));
  }

  // ---- random values ----

  @Test
  void randomValuesHaveTheBitsOfTheCpu() {
    for (DType dtype : FLOATS) {
      for (Tensor x : layouts(random(dtype, 33, 65))) {
        AgainstCpu.check("uniform_", Attrs.of(5L, 7L, -1.5, 2.25), 0, x);
        double last = dtype == DType.FLOAT64 ? 1e-14 : tolerance(dtype) / 10;
        AgainstCpu.check("normal_", Attrs.of(5L, 7L, 0.5, 2.0), last, x);
      }
      Tensor x = random(dtype, 33, 65);
      AgainstCpu.check("dropout", Attrs.of(5L, 7L, 0.3), 0, x);
      AgainstCpu.check("dropout", Attrs.of(5L, 7L, 0.3), 0, x.transpose(0, 1));
      AgainstCpu.check("dropout", Attrs.of(5L, 7L, 1.0), 0, x);
      long[] whole = {70, 131};
      long[] start = {3, 66};
      AgainstCpu.check("uniform_", Attrs.of(5L, 7L, 0, 1, whole, start), 0, x);
      AgainstCpu.check("dropout", Attrs.of(5L, 7L, 0.3, whole, start), 0, x);
    }
    for (DType dtype : new DType[] {DType.INT64, DType.INT32, DType.UINT8}) {
      AgainstCpu.check("random_", Attrs.of(-5L, 1L << 40, 0L, 100L), 0, random(dtype, 1001));
    }
  }
}
