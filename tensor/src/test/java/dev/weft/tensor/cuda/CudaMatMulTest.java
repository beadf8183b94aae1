package dev.weft.tensor.cuda;

import static dev.weft.tensor.cuda.AgainstCpu.check;
import static dev.weft.tensor.cuda.Samples.normal;
import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.MatMul;
import dev.weft.tensor.op.Views;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Matrix products on the GPU against those of the CPU. */
@CudaTest
class CudaMatMulTest {
  private static double tolerance(DType dtype, long inner) {
    return Samples.tolerance(dtype) * Math.max(1, Math.sqrt(inner));
  }

  @AfterEach
  void tf32Off() {
    CudaMath.allowTf32(false);
  }

  @Test
  void matricesOfOddSizesPlainAndTransposed() {
    for (DType t : Samples.FLOATS) {
      for (long[] s :
          new long[][] {{1, 1, 1}, {3, 5, 7}, {65, 33, 129}, {128, 1, 64}, {1, 300, 2}}) {
        Tensor a = normal(1, t, s[0], s[2]);
        Tensor b = normal(2, t, s[2], s[1]);
        Tensor at = Views.t(normal(3, t, s[2], s[0]));
        Tensor bt = Views.t(normal(4, t, s[1], s[2]));
        double tolerance = tolerance(t, s[2]);
        check("mm", Attrs.NONE, tolerance, a, b);
        check("mm", Attrs.NONE, tolerance, at, b);
        check("mm", Attrs.NONE, tolerance, a, bt);
        check("mm", Attrs.NONE, tolerance, at, bt);
      }
    }
  }

  @Test
  void partsOfLargerMatricesAreReadInPlace() {
    for (DType t : Samples.FLOATS) {
      Tensor a = normal(1, t, 20, 30).to(AgainstCpu.GPU);
      Tensor b = normal(2, t, 40, 50).to(AgainstCpu.GPU);
      Tensor left = a.slice(0, 3, 16).slice(1, 5, 28);
      Tensor right = b.slice(0, 10, 33).slice(1, 1, 18);
      Tensor everyOther = Views.slice(b, 1, 0, 34, 2).slice(0, 0, 23);
      AgainstCpu.close(
          "parts", MatMul.mm(onCpu(left), onCpu(right)), MatMul.mm(left, right), tolerance(t, 23));
      AgainstCpu.close(
          "every other column",
          MatMul.mm(onCpu(left), onCpu(everyOther)),
          MatMul.mm(left, everyOther),
          tolerance(t, 23));
    }
  }

  private static Tensor onCpu(Tensor t) {
    return Casts.to(t.contiguous(), dev.weft.tensor.Device.CPU);
  }

  @Test
  void batchesBroadcast() {
    for (DType t : Samples.FLOATS) {
      double tolerance = tolerance(t, 6);
      Tensor m = normal(1, t, 4, 6);
      check("matmul", Attrs.NONE, tolerance, normal(2, t, 2, 3, 5, 6), normal(3, t, 2, 3, 6, 4));
      check("matmul", Attrs.NONE, tolerance, normal(2, t, 2, 3, 5, 6), Views.t(m));
      check("matmul", Attrs.NONE, tolerance, m, normal(3, t, 2, 3, 6, 4));
      check("matmul", Attrs.NONE, tolerance, normal(2, t, 2, 1, 5, 6), normal(3, t, 1, 3, 6, 4));
      check("matmul", Attrs.NONE, tolerance, normal(2, t, 3, 5, 6), normal(3, t, 2, 1, 6, 4));
      check("matmul", Attrs.NONE, tolerance, normal(2, t, 1, 6), normal(3, t, 7, 6, 1));
      check("matmul", Attrs.NONE, tolerance, normal(2, t, 6), normal(3, t, 2, 6, 4));
      check("matmul", Attrs.NONE, tolerance, normal(2, t, 2, 5, 6), normal(3, t, 6));
      check("matmul", Attrs.NONE, tolerance, normal(2, t, 6), normal(3, t, 6));
      check("dot", Attrs.NONE, tolerance, normal(2, t, 6), normal(3, t, 6));
      check("bmm", Attrs.NONE, tolerance, normal(2, t, 3, 5, 6), normal(3, t, 3, 6, 2));
      Tensor heads = normal(4, t, 2, 5, 3, 6).to(AgainstCpu.GPU);
      Tensor byHead = Views.transpose(heads, 1, 2);
      AgainstCpu.close(
          "scores of heads",
          MatMul.matmul(onCpu(byHead), Views.transpose(onCpu(byHead), -2, -1)),
          MatMul.matmul(byHead, Views.transpose(byHead, -2, -1)),
          tolerance);
    }
  }

  @Test
  void linearWithAndWithoutBiasAndItsWeightGradient() {
    for (DType t : Samples.FLOATS) {
      double tolerance = tolerance(t, 30);
      Tensor w = normal(1, t, 7, 5);
      Tensor x = normal(2, t, 2, 15, 5);
      check("linear", Attrs.NONE, tolerance, x, w);
      check("linear", Attrs.NONE, tolerance, x, w, normal(3, t, 7));
      check("linear", Attrs.NONE, tolerance, normal(2, t, 5), w, normal(3, t, 7));
      check("contract_leading", Attrs.NONE, tolerance, normal(4, t, 2, 15, 7), x);
      check("contract_leading", Attrs.NONE, tolerance, normal(4, t, 15, 7), normal(4, t, 15, 3));
    }
  }

  @Test
  void sumsWithFactors() {
    for (DType t : Samples.FLOATS) {
      double tolerance = tolerance(t, 6);
      Tensor a = normal(1, t, 3, 6);
      Tensor b = normal(2, t, 6, 5);
      check("addmm", Attrs.of(null, null), tolerance, normal(3, t, 3, 5), a, b);
      check("addmm", Attrs.of(0.5, 2.0), tolerance, normal(3, t, 5), a, b);
      check(
          "addmm",
          Attrs.of(0.0, 1.0),
          tolerance,
          Tensor.of(new double[] {Double.NaN}, 1).to(t),
          a,
          b);
      check(
          "baddbmm",
          Attrs.of(0.5, 2.0),
          tolerance,
          normal(3, t, 3, 1),
          normal(4, t, 2, 3, 6),
          normal(5, t, 2, 6, 4));
    }
  }

  @Test
  void emptySizes() {
    for (DType t : Samples.FLOATS) {
      check("mm", Attrs.NONE, 0, normal(1, t, 0, 3), normal(1, t, 3, 2));
      check("mm", Attrs.NONE, 0, normal(1, t, 4, 0), normal(1, t, 0, 2));
      check("bmm", Attrs.NONE, 0, normal(1, t, 0, 4, 3), normal(1, t, 0, 3, 2));
      check("linear", Attrs.NONE, 0, normal(1, t, 2, 0), normal(1, t, 3, 0), normal(1, t, 3));
      check("contract_leading", Attrs.NONE, 0, normal(1, t, 0, 2), normal(1, t, 0, 3));
      check(
          "addmm",
          Attrs.of(0.5, 2.0),
          Samples.tolerance(t),
          normal(3, t, 5),
          normal(1, t, 3, 0),
          normal(1, t, 0, 5));
    }
  }

  @Test
  void integersWrap() {
    Tensor a = Tensor.of(new long[] {Long.MAX_VALUE, 2, -3, 4, 5, 6}, 2, 3);
    Tensor b = Tensor.of(new long[] {3, -1, 7, 2, 9, 1L << 62}, 3, 2);
    for (DType t : new DType[] {DType.INT64, DType.INT32, DType.INT16, DType.INT8, DType.UINT8}) {
      Tensor x = Casts.to(a, t);
      Tensor y = Casts.to(b, t);
      check("mm", Attrs.NONE, 0, x, y);
      check("mm", Attrs.NONE, 0, Views.t(y), Views.t(x));
      check("matmul", Attrs.NONE, 0, Views.unsqueeze(x, 0), y);
      check("addmm", Attrs.of(2, 3), 0, Casts.to(Tensor.of(new long[] {1, 2}, 2), t), x, y);
    }
  }

  @Test
  void tf32IsUsedOnlyWhenAllowed() {
    Tensor a = normal(1, DType.FLOAT32, 256, 512);
    Tensor b = normal(2, DType.FLOAT32, 512, 256);
    double[] exact =
        MatMul.mm(Casts.to(a, DType.FLOAT64), Casts.to(b, DType.FLOAT64)).toDoubleArray();
    Tensor x = a.to(AgainstCpu.GPU);
    Tensor y = b.to(AgainstCpu.GPU);
    double off = worst(exact, MatMul.mm(x, y).toDoubleArray());
    CudaMath.allowTf32(true);
    double on = worst(exact, MatMul.mm(x, y).toDoubleArray());
    assertThat(off).as("error without TF32").isLessThan(1e-3);
    assertThat(on).as("error with TF32").isGreaterThan(4 * off).isLessThan(0.5);
  }

  private static double worst(double[] expected, double[] got) {
    double worst = 0;
    for (int i = 0; i < got.length; i++) {
      worst = Math.max(worst, Math.abs(got[i] - expected[i]));
    }
    return worst;
  }

  @Test
  void everyStreamHasItsOwnWorkspace() {
    Tensor a = normal(1, DType.FLOAT32, 64, 96);
    Tensor b = normal(2, DType.FLOAT32, 96, 32);
    Tensor expected = MatMul.mm(a, b);
    for (int i = 0; i < 12; i++) {
      CudaStream stream = CudaStream.fromPool(0, false);
      try (CudaStream.InUse use = stream.use()) {
        assertThat(use).isNotNull();
        AgainstCpu.close(
            "stream " + i, expected, MatMul.mm(a.to(AgainstCpu.GPU), b.to(AgainstCpu.GPU)), 1e-4);
      }
    }
  }
}
