package dev.weft.dtensor;

import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Attention;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Compare;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Extrema;
import dev.weft.tensor.op.Gated;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Indexing;
import dev.weft.tensor.op.Joins;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.MatMul;
import dev.weft.tensor.op.Norms;
import dev.weft.tensor.op.Ordering;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Random;
import dev.weft.tensor.op.Rearrange;
import dev.weft.tensor.op.Reductions;
import dev.weft.tensor.op.Softmaxes;
import dev.weft.tensor.op.Splits;
import dev.weft.tensor.op.Statistics;
import dev.weft.tensor.op.Unary;
import dev.weft.tensor.op.Updates;
import dev.weft.tensor.op.Views;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/** Calls of operators on small tensors of uneven sizes, for {@link RuleValidatorTest}. */
final class OperatorSamples {
  /** What an input holds. */
  enum Kind {
    FLOAT,
    POSITIVE,
    BOOL,
    INDEX
  }

  /** An input. */
  record Input(Kind kind, long... shape) {}

  /**
   * A sample.
   *
   * @param refuses whether the operator may refuse placements
   */
  record Sample(
      String name,
      List<Input> inputs,
      Function<List<Tensor>, Object> call,
      boolean inPlace,
      boolean refuses) {}

  private static final Input X = new Input(Kind.FLOAT, 5, 4);
  private static final Input Y = new Input(Kind.POSITIVE, 5, 4);
  private static final Input ROW = new Input(Kind.POSITIVE, 4);
  private static final Input MASK = new Input(Kind.BOOL, 5, 4);
  private static final Input CUBE = new Input(Kind.FLOAT, 4, 5, 3);

  private OperatorSamples() {}

  static List<Sample> all() {
    List<Sample> s = new ArrayList<>();
    elementwise(s);
    inPlace(s);
    products(s);
    shapes(s);
    reductions(s);
    indexing(s);
    neural(s);
    return s;
  }

  private static void add(
      List<Sample> s, String name, Function<List<Tensor>, Object> call, Input... inputs) {
    s.add(new Sample(name, List.of(inputs), call, false, false));
  }

  private static void refusing(
      List<Sample> s, String name, Function<List<Tensor>, Object> call, Input... inputs) {
    s.add(new Sample(name, List.of(inputs), call, false, true));
  }

  private static void writing(
      List<Sample> s, String name, Function<List<Tensor>, Object> call, Input... inputs) {
    s.add(new Sample(name, List.of(inputs), call, true, true));
  }

  private static void elementwise(List<Sample> s) {
    add(s, "neg", t -> Unary.neg(t.get(0)), X);
    add(s, "abs", t -> Unary.abs(t.get(0)), X);
    add(s, "sign", t -> Unary.sign(t.get(0)), X);
    add(s, "floor", t -> Unary.floor(t.get(0)), X);
    add(s, "ceil", t -> Unary.ceil(t.get(0)), X);
    add(s, "round", t -> Unary.round(t.get(0)), X);
    add(s, "square", t -> Unary.square(t.get(0)), X);
    add(s, "exp", t -> Unary.exp(t.get(0)), X);
    add(s, "sin", t -> Unary.sin(t.get(0)), X);
    add(s, "cos", t -> Unary.cos(t.get(0)), X);
    add(s, "erf", t -> Unary.erf(t.get(0)), X);
    add(s, "isnan", t -> Unary.isNan(t.get(0)), X);
    add(s, "clamp", t -> Unary.clamp(t.get(0), -1, 2), X);
    add(s, "log", t -> Unary.log(t.get(0)), Y);
    add(s, "log1p", t -> Unary.log1p(t.get(0)), Y);
    add(s, "sqrt", t -> Unary.sqrt(t.get(0)), Y);
    add(s, "rsqrt", t -> Unary.rsqrt(t.get(0)), Y);
    add(s, "reciprocal", t -> Unary.reciprocal(t.get(0)), Y);
    add(s, "atan2", t -> Unary.atan2(t.get(0), t.get(1)), X, Y);
    add(s, "relu", t -> Activations.relu(t.get(0)), X);
    add(s, "leaky_relu", t -> Activations.leakyRelu(t.get(0), 0.1), X);
    add(s, "sigmoid", t -> Activations.sigmoid(t.get(0)), X);
    add(s, "tanh", t -> Activations.tanh(t.get(0)), X);
    add(s, "silu", t -> Activations.silu(t.get(0)), X);
    add(s, "gelu", t -> Activations.gelu(t.get(0)), X);
    add(s, "clone", t -> Casts.copy(t.get(0)), X);
    add(s, "to", t -> Casts.to(t.get(0), DType.FLOAT64), X);
    add(s, "full_like", t -> Creation.onesLike(t.get(0)), X);
    add(s, "add_scalar", t -> Pointwise.add(t.get(0), 2.5), X);
    add(s, "sub_scalar", t -> Pointwise.sub(t.get(0), 2.5), X);
    add(s, "rsub_scalar", t -> Pointwise.rsub(t.get(0), 2.5), X);
    add(s, "mul_scalar", t -> Pointwise.mul(t.get(0), -2.5), X);
    add(s, "div_scalar", t -> Pointwise.div(t.get(0), -2.5), X);
    add(s, "rdiv_scalar", t -> Pointwise.rdiv(t.get(0), 2.5), Y);
    add(s, "pow_scalar", t -> Pointwise.pow(t.get(0), 3), X);
    for (Input other : List.of(Y, ROW, new Input(Kind.POSITIVE, 5, 1))) {
      add(s, "add", t -> Pointwise.add(t.get(0), t.get(1)), X, other);
      add(s, "add alpha", t -> Pointwise.add(t.get(0), t.get(1), -2), X, other);
      add(s, "sub", t -> Pointwise.sub(t.get(0), t.get(1)), X, other);
      add(s, "mul", t -> Pointwise.mul(t.get(0), t.get(1)), X, other);
      add(s, "div", t -> Pointwise.div(t.get(0), t.get(1)), X, other);
      add(s, "maximum", t -> Pointwise.maximum(t.get(0), t.get(1)), X, other);
      add(s, "minimum", t -> Pointwise.minimum(t.get(0), t.get(1)), X, other);
    }
    add(s, "pow", t -> Pointwise.pow(t.get(0), t.get(1)), Y, Y);
    add(s, "addcmul", t -> Pointwise.addcmul(t.get(0), t.get(1), t.get(2), 0.5), X, X, Y);
    add(s, "addcdiv", t -> Pointwise.addcdiv(t.get(0), t.get(1), t.get(2), 0.5), X, X, Y);
    add(s, "lerp", t -> Pointwise.lerp(t.get(0), t.get(1), t.get(2)), X, X, Y);
    add(s, "lerp_scalar", t -> Pointwise.lerp(t.get(0), t.get(1), 0.3), X, Y);
    add(s, "eq", t -> Compare.eq(t.get(0), t.get(1)), X, Y);
    add(s, "ne", t -> Compare.ne(t.get(0), t.get(1)), X, Y);
    add(s, "lt", t -> Compare.lt(t.get(0), t.get(1)), X, Y);
    add(s, "le", t -> Compare.le(t.get(0), t.get(1)), X, Y);
    add(s, "gt", t -> Compare.gt(t.get(0), t.get(1)), X, Y);
    add(s, "ge", t -> Compare.ge(t.get(0), t.get(1)), X, Y);
    add(s, "scalars", t -> compared(t.get(0)), X);
    add(s, "logical_and", t -> Compare.logicalAnd(t.get(0), t.get(1)), MASK, MASK);
    add(s, "logical_or", t -> Compare.logicalOr(t.get(0), t.get(1)), MASK, MASK);
    add(s, "logical_xor", t -> Compare.logicalXor(t.get(0), t.get(1)), MASK, MASK);
    add(s, "logical_not", t -> Compare.logicalNot(t.get(0)), MASK);
    add(s, "where", t -> Compare.where(t.get(0), t.get(1), t.get(2)), MASK, X, Y);
    add(s, "masked_fill", t -> Compare.maskedFill(t.get(0), t.get(1), 7), X, MASK);
  }

  private static List<Tensor> compared(Tensor x) {
    return List.of(
        Compare.eq(x, 1),
        Compare.ne(x, 1),
        Compare.lt(x, 1),
        Compare.le(x, 1),
        Compare.gt(x, 1),
        Compare.ge(x, 1));
  }

  private static void inPlace(List<Sample> s) {
    writing(s, "add_", t -> InPlace.add(t.get(0), t.get(1)), X, Y);
    writing(s, "sub_", t -> InPlace.sub(t.get(0), t.get(1)), X, Y);
    writing(s, "mul_", t -> InPlace.mul(t.get(0), t.get(1)), X, ROW);
    writing(s, "div_", t -> InPlace.div(t.get(0), t.get(1)), X, Y);
    writing(s, "copy_", t -> InPlace.copy(t.get(0), t.get(1)), X, Y);
    writing(s, "add_scalar_", t -> InPlace.add(t.get(0), 3), X);
    writing(s, "sub_scalar_", t -> InPlace.sub(t.get(0), 3), X);
    writing(s, "mul_scalar_", t -> InPlace.mul(t.get(0), 3), X);
    writing(s, "div_scalar_", t -> InPlace.div(t.get(0), 3), X);
    writing(s, "relu_", t -> InPlace.relu(t.get(0)), X);
    writing(s, "clamp_", t -> InPlace.clamp(t.get(0), -1, 1), X);
    writing(s, "fill_", t -> InPlace.fill(t.get(0), 3), X);
    writing(s, "zero_", t -> InPlace.zero(t.get(0)), X);
    writing(s, "lerp_scalar_", t -> InPlace.lerp(t.get(0), t.get(1), 0.3), X, Y);
    writing(s, "addcmul_", t -> InPlace.addcmul(t.get(0), t.get(1), t.get(2), 2), X, X, Y);
    writing(s, "addcdiv_", t -> InPlace.addcdiv(t.get(0), t.get(1), t.get(2), 2), X, X, Y);
    writing(s, "uniform_", t -> Random.uniform(t.get(0), -1, 2, new Generator(3)), X);
    writing(s, "normal_", t -> Random.normal(t.get(0), 1, 2, new Generator(3)), X);
    writing(s, "random_", t -> Random.integers(t.get(0), 0, 9, new Generator(3)), X);
    writing(
        s,
        "adamw_",
        t -> {
          Tensor unused =
              Updates.adamw(t.get(0), t.get(1), t.get(2), t.get(3), 0.1, 0.9, 0.99, 1e-8, 0.01, 3);
          return List.of(t.get(0), t.get(2), t.get(3));
        },
        X,
        X,
        X,
        Y);
    writing(s, "masked_fill_", t -> InPlace.maskedFill(t.get(0), t.get(1), 2), X, MASK);
  }

  private static void products(List<Sample> s) {
    Input w = new Input(Kind.FLOAT, 4, 7);
    add(s, "mm", t -> MatMul.mm(t.get(0), t.get(1)), X, w);
    add(s, "matmul", t -> MatMul.matmul(t.get(0), t.get(1)), CUBE, new Input(Kind.FLOAT, 3, 5));
    add(s, "matmul vector", t -> MatMul.matmul(t.get(0), t.get(1)), X, ROW);
    Input right = new Input(Kind.FLOAT, 4, 3, 5);
    add(s, "bmm", t -> MatMul.bmm(t.get(0), t.get(1)), CUBE, right);
    add(s, "dot", t -> MatMul.dot(t.get(0), t.get(1)), ROW, ROW);
    add(s, "outer", t -> MatMul.outer(t.get(0), t.get(1)), ROW, new Input(Kind.FLOAT, 5));
    Input weight = new Input(Kind.FLOAT, 6, 4);
    add(
        s,
        "linear",
        t -> MatMul.linear(t.get(0), t.get(1), t.get(2)),
        X,
        weight,
        new Input(Kind.FLOAT, 6));
    add(
        s,
        "linear 3d",
        t -> MatMul.linear(t.get(0), t.get(1), null),
        CUBE,
        new Input(Kind.FLOAT, 5, 3));
    add(
        s,
        "addmm",
        t -> MatMul.addmm(t.get(0), t.get(1), t.get(2), 0.5, 2),
        new Input(Kind.FLOAT, 7),
        X,
        w);
    add(
        s,
        "baddbmm",
        t -> MatMul.baddbmm(t.get(0), t.get(1), t.get(2), 0.5, 2),
        new Input(Kind.FLOAT, 4, 5, 5),
        CUBE,
        right);
  }

  private static void shapes(List<Sample> s) {
    add(s, "transpose", t -> Views.transpose(t.get(0), 0, 2), CUBE);
    add(s, "permute", t -> Views.permute(t.get(0), 2, 0, 1), CUBE);
    add(s, "unsqueeze", t -> Views.unsqueeze(t.get(0), 1), CUBE);
    refusing(s, "squeeze", t -> Views.squeeze(t.get(0)), new Input(Kind.FLOAT, 1, 5, 4));
    add(s, "slice", t -> Views.slice(t.get(0), 0, 1, 5, 2), X);
    add(s, "select", t -> Views.select(t.get(0), 1, 2), X);
    add(s, "expand", t -> Views.expand(t.get(0), 3, 5, 4), new Input(Kind.FLOAT, 5, 1));
    refusing(s, "view flat", t -> Views.view(t.get(0), 60), CUBE);
    refusing(s, "view split", t -> Views.view(t.get(0), 2, 2, 5, 3), CUBE);
    refusing(s, "reshape", t -> Views.reshape(t.get(0), 4, 15), CUBE);
    refusing(s, "reshape mixed", t -> Views.reshape(t.get(0), 2, 6, 5), CUBE);
    add(s, "flip", t -> Rearrange.flip(t.get(0), 0), X);
    add(s, "roll", t -> Rearrange.roll(t.get(0), new long[] {2}, 1), X);
    refusing(s, "repeat", t -> Rearrange.repeat(t.get(0), 2, 1), X);
    add(s, "cat", t -> Joins.cat(t, 0), X, new Input(Kind.FLOAT, 2, 4));
    add(s, "stack", t -> Joins.stack(t, 1), X, Y);
    add(s, "split", t -> Splits.split(t.get(0), 2, 0), X);
    refusing(s, "unbind", t -> Splits.unbind(t.get(0), 1), X);
  }

  private static void reductions(List<Sample> s) {
    for (int[] dims : List.of(new int[0], new int[] {0}, new int[] {1}, new int[] {0, 2})) {
      add(s, "sum", t -> Reductions.sum(t.get(0), dims, true), CUBE);
      add(s, "mean", t -> Reductions.mean(t.get(0), dims, false), CUBE);
      add(s, "amax", t -> Extrema.amax(t.get(0), dims, false), CUBE);
      add(s, "amin", t -> Extrema.amin(t.get(0), dims, true), CUBE);
      add(
          s,
          "prod",
          t -> Reductions.prod(t.get(0), dims, false),
          new Input(Kind.POSITIVE, 4, 5, 2));
      add(s, "var", t -> Statistics.var(t.get(0), dims, 1, false), CUBE);
      add(s, "std", t -> Statistics.std(t.get(0), dims, 0, true), CUBE);
      add(s, "logsumexp", t -> Reductions.logSumExp(t.get(0), dims, false), CUBE);
      add(s, "all", t -> Reductions.all(t.get(0), dims, false), new Input(Kind.BOOL, 4, 5, 3));
      add(s, "any", t -> Reductions.any(t.get(0), dims, false), new Input(Kind.BOOL, 4, 5, 3));
      for (double p : new double[] {0, 1, 2, 3, Double.POSITIVE_INFINITY}) {
        add(s, "norm " + p, t -> Statistics.vectorNorm(t.get(0), p, dims, false), CUBE);
      }
    }
    add(s, "max", t -> List.of((Object[]) Extrema.max(t.get(0), 0, false)), X);
    add(s, "min", t -> List.of((Object[]) Extrema.min(t.get(0), 1, true)), X);
    add(s, "argmax", t -> Extrema.argmax(t.get(0)), X);
    add(s, "argmax 0", t -> Extrema.argmax(t.get(0), 0, false), X);
    add(s, "argmin 1", t -> Extrema.argmin(t.get(0), 1, true), X);
    add(s, "cumsum", t -> Reductions.cumsum(t.get(0), 0), X);
    add(s, "sort", t -> List.of((Object[]) Ordering.sort(t.get(0), 0, true)), X);
    add(s, "topk", t -> List.of((Object[]) Ordering.topk(t.get(0), 2, 1, false)), X);
    add(s, "equal", t -> Compare.equal(t.get(0), t.get(1)), X, Y);
    add(s, "allclose", t -> Compare.allClose(t.get(0), t.get(0), 1e-5, 1e-8), X);
  }

  private static void indexing(List<Sample> s) {
    Input index = new Input(Kind.INDEX, 5, 4);
    add(s, "gather", t -> Indexing.gather(t.get(0), 0, t.get(1)), X, index);
    add(s, "gather 1", t -> Indexing.gather(t.get(0), 1, t.get(1)), X, index);
    add(s, "scatter_add", t -> Indexing.scatterAdd(t.get(0), 1, t.get(1), t.get(2)), X, index, Y);
    Input vector = new Input(Kind.INDEX, 3);
    add(s, "index_select", t -> Indexing.indexSelect(t.get(0), 0, t.get(1)), X, vector);
    add(s, "embedding", t -> Indexing.embedding(t.get(0), t.get(1)), X, index);
    add(s, "tril", t -> Indexing.tril(t.get(0), 1), CUBE);
    add(s, "triu", t -> Indexing.triu(t.get(0), 0), X);
  }

  private static void neural(List<Sample> s) {
    add(s, "softmax", t -> Softmaxes.softmax(t.get(0), 1), CUBE);
    add(s, "log_softmax", t -> Softmaxes.logSoftmax(t.get(0), 0), X);
    Input three = new Input(Kind.POSITIVE, 3);
    add(
        s,
        "layer_norm",
        t -> Norms.layerNorm(t.get(0), new long[] {3}, t.get(1), t.get(2), 1e-5),
        CUBE,
        three,
        three);
    add(s, "rms_norm", t -> Norms.rmsNorm(t.get(0), new long[] {3}, t.get(1), 1e-6), CUBE, three);
    Input target = new Input(Kind.INDEX, 5);
    for (String r : List.of("mean", "sum", "none")) {
      // Class 1 does not count: parts differ in how many targets do.
      add(
          s,
          "cross_entropy " + r,
          t -> Losses.crossEntropy(t.get(0), t.get(1), r, 1, 0.1),
          X,
          target);
      add(s, "nll_loss " + r, t -> Losses.nllLoss(t.get(0), t.get(1), r, 1), X, target);
      add(s, "mse_loss " + r, t -> Losses.mseLoss(t.get(0), t.get(1), r), X, Y);
    }
    add(s, "dropout", t -> Random.dropout(t.get(0), 0.5, true, new Generator(7)), X);
    add(
        s,
        "rope",
        t -> Attention.rope(t.get(0), t.get(1), t.get(2), 1),
        new Input(Kind.FLOAT, 2, 5, 4),
        new Input(Kind.FLOAT, 5, 2),
        new Input(Kind.FLOAT, 5, 2));
    Input heads = new Input(Kind.FLOAT, 2, 3, 4, 2);
    add(
        s,
        "attention",
        t -> Attention.scaledDotProduct(t.get(0), t.get(1), t.get(1), null),
        heads,
        heads);
    for (int d : new int[] {1, 2}) {
      add(
          s,
          "fused attention along " + d,
          t -> Attention.scaledDotProduct(t.get(0), t.get(1), t.get(2), true, d),
          heads,
          heads,
          heads);
    }
    add(s, "swiglu", t -> Gated.swiglu(t.get(0), t.get(1)), X, Y);
  }
}
