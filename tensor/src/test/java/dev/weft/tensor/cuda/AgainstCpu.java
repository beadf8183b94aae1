package dev.weft.tensor.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Catalogue;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Op;
import java.util.Arrays;

/** Runs an operator on the CPU and on the GPU with equal inputs and compares all results. */
final class AgainstCpu {
  static final Device GPU = Device.cuda(0);

  private AgainstCpu() {}

  /** Calls an operator of the catalogue by name; in-place ones get copies. */
  static void check(String name, Attrs attrs, double tolerance, Tensor... cpu) {
    Op op = Catalogue.get(name);
    Tensor[] gpu = Arrays.stream(cpu).map(AgainstCpu::sameLayoutOnGpu).toArray(Tensor[]::new);
    Tensor[] mine = cpu.clone();
    if (op.form() == Op.Form.IN_PLACE) {
      mine[0] = ownLayout(mine[0]);
    }
    Tensor[] expected = Dispatcher.callAll(op, attrs, mine);
    Tensor[] got = Dispatcher.callAll(op, attrs, gpu);
    assertThat(got).as("%s: number of results", name).hasSameSizeAs(expected);
    for (int i = 0; i < got.length; i++) {
      close(
          name + "(" + attrs + ") of " + describe(cpu) + ", result " + i,
          expected[i],
          got[i],
          tolerance);
    }
  }

  /** A copy with the same strides, which can be written: also into a view with gaps. */
  private static Tensor ownLayout(Tensor cpu) {
    StridedTensor t = (StridedTensor) cpu;
    long n = t.storage().byteSize() / t.dtype().byteSize();
    StridedTensor all = t.withLayout(new long[] {n}, new long[] {1}, 0);
    return ((StridedTensor) all.copy()).withLayout(t.shape(), t.strides(), t.offset());
  }

  private static String describe(Tensor[] tensors) {
    return Arrays.stream(tensors).map(Tensor::describe).toList().toString();
  }

  /** A copy on the GPU with the same strides and offset. */
  static Tensor sameLayoutOnGpu(Tensor cpu) {
    StridedTensor t = (StridedTensor) cpu;
    long n = t.storage().byteSize() / t.dtype().byteSize();
    StridedTensor all = t.withLayout(new long[] {n}, new long[] {1}, 0);
    return ((StridedTensor) all.to(GPU)).withLayout(t.shape(), t.strides(), t.offset());
  }

  /** |got - expected| <= tolerance * max(1, |expected|) element by element; NaN equals NaN. */
  static void close(String what, Tensor expected, Tensor got, double tolerance) {
    assertThat(got.shape()).as(what).isEqualTo(expected.shape());
    assertThat(got.dtype()).as(what).isEqualTo(expected.dtype());
    assertThat(got.device().isCuda()).as("%s is on the GPU", what).isTrue();
    if (expected.dtype().category() != DType.Category.FLOATING) {
      assertThat(got.toLongArray()).as(what).isEqualTo(expected.toLongArray());
      return;
    }
    double[] e = expected.toDoubleArray();
    double[] g = got.toDoubleArray();
    for (int i = 0; i < e.length; i++) {
      boolean same =
          Double.compare(e[i], g[i]) == 0
              || (Double.isNaN(e[i]) && Double.isNaN(g[i]))
              || Math.abs(e[i] - g[i]) <= tolerance * Math.max(1, Math.abs(e[i]));
      assertThat(same)
          .as(
              "%s: element %d of %s is %s, expected %s",
              what, i, Arrays.toString(got.shape()), g[i], e[i])
          .isTrue();
    }
  }
}
