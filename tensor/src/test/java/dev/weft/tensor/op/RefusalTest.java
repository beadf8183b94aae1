package dev.weft.tensor.op;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import java.util.List;
import org.junit.jupiter.api.Test;

/**
 * Bad arguments are refused by an exception that names operator, argument, value and expectation.
 */
class RefusalTest {
  private final Tensor x = Tensor.of(new float[] {1, 2, 3, 4, 5, 6}, 2, 3);
  private final Tensor i = Tensor.of(new long[] {1, 2, 3});

  private static void refused(Runnable call, String message) {
    assertThatThrownBy(call::run)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }

  private static void outside(Runnable call, String message) {
    assertThatThrownBy(call::run)
        .isInstanceOf(IndexOutOfBoundsException.class)
        .hasMessageContaining(message);
  }

  @Test
  void shapesThatDoNotFit() {
    refused(() -> x.add(Tensor.of(new float[] {1, 2})), "add: shapes [2, 3] and [2]");
    refused(() -> x.reshape(4), "reshape: shape [4] is not valid");
    refused(() -> Views.view(x.t(), 6), "view: shape [6] is no view of shape [3, 2]");
    refused(() -> x.expand(3, 3), "expand: shape [3, 3] does not fit");
    refused(() -> InPlace.add(i, Tensor.of(new long[3 * 2], 2, 3)), "add_");
    refused(() -> Joins.cat(List.of(x, i.to(DType.FLOAT32)), 0), "cat: a tensor has shape [3]");
    refused(() -> Reductions.sumToSize(x, 4), "sum_to_size: shape [4]");
    refused(() -> Losses.crossEntropy(x, i), "cross_entropy: target has shape [3]; expected [2]");
    refused(
        () -> Norms.rmsNorm(x, new long[] {2}, null, null),
        "rms_norm: input has shape [2, 3]; expected it to end with normalized_shape [2]");
  }

  @Test
  void dimensionsOutOfRange() {
    outside(() -> x.sum(2), "sum: dim 2 is out of range; expected [-2, 1]");
    outside(() -> x.transpose(0, -3), "transpose: dim -3");
    outside(() -> x.softmax(5), "softmax: dim 5");
    outside(() -> x.select(1, 3), "select: index 3 is out of range for dimension 1 of size 3");
    outside(() -> Views.narrow(x, 1, 2, 2), "narrow: start 2 with length 2");
    refused(() -> x.sum(0, 0), "sum: dims [0, 0] names dimension 0 twice");
    refused(() -> x.permute(0), "permute: dims [0]");
  }

  @Test
  void dtypesThatHaveNoResult() {
    refused(() -> i.mean(), "mean: input has dtype int64; expected a floating-point one");
    refused(() -> InPlace.div(i, 2), "div_scalar_: the result is float32");
    refused(() -> InPlace.add(i, 0.5), "add_scalar_: the result is float32");
    refused(() -> Compare.where(x, x, x), "where: condition has dtype float32; expected bool");
    refused(() -> Indexing.embedding(x, x), "embedding: indices has dtype float32");
    refused(() -> Compare.gt(x, 0).neg(), "neg: input has dtype bool");
    refused(() -> Pointwise.pow(i, -1), "pow_scalar: value -1 is negative");
  }

  @Test
  void indicesOutOfRange() {
    outside(() -> Indexing.embedding(x, i), "embedding: index 2 is out of range; expected [0, 1]");
    outside(
        () -> Losses.crossEntropy(x, Tensor.of(new long[] {0, 3})),
        "cross_entropy: target 3 at position 1 is out of range; expected [0, 2]");
    outside(
        () -> Indexing.gather(x, 0, Tensor.of(new long[] {-1}, 1, 1)),
        "gather: index -1 is out of range; expected [0, 1]");
  }

  @Test
  void extremaOfNothing() {
    refused(() -> Creation.zeros(DType.FLOAT32, 0).max(), "amax: input of shape [0]");
  }
}
