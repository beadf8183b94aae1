package dev.weft.tensor.op;

import static dev.weft.tensor.op.GradCheck.spread;
import static dev.weft.tensor.op.GradCheck.values;

import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Every differentiable operator against finite differences; {@link CatalogueTest} counts them. */
class GradientTest {
  record Case(String name, Function<Tensor[], Tensor> f, Tensor... inputs) {
    Tensor run() {
      Tensor[] leaves = new Tensor[inputs.length];
      for (int i = 0; i < leaves.length; i++) {
        leaves[i] = inputs[i].alias();
        leaves[i].requiresGrad(inputs[i].dtype().isFloatingPoint());
      }
      return f.apply(leaves);
    }
  }

  private static final List<Case> CASES = new ArrayList<>();

  private static void add(String name, Function<Tensor[], Tensor> f, Tensor... inputs) {
    CASES.add(new Case(name, f, inputs));
  }

  private static void unary(String name, Function<Tensor, Tensor> f, Tensor x) {
    add(name, t -> f.apply(t[0]), x);
    add(name + " of a view", t -> f.apply(Views.transpose(t[0], 0, 1)), x);
  }

  private static Tensor positive(long... shape) {
    return spread(0.5, 2, 2, shape);
  }

  private static Tensor longs(long[] shape, long... v) {
    return Tensor.of(v, shape);
  }

  static {
    // The cases outlive the scope of the test that happens to load this class.
    boolean unused =
        TensorScope.outside(
            () -> {
              arithmetic();
              functions();
              inPlace();
              reductions();
              views();
              products();
              losses();
              indexing();
              return true;
            });
  }

  private static void arithmetic() {
    Tensor a = values(2, 3);
    Tensor b = spread(0.5, 2, 5, 2, 3);
    Tensor row = spread(0.5, 2, 7, 3);
    Tensor column = spread(0.5, 2, 8, 2, 1);
    Tensor scalar = Tensor.of(new double[] {0.7}, new long[0]);
    for (Tensor other : List.of(b, row, column, scalar)) {
      String s = java.util.Arrays.toString(other.shape());
      add("add " + s, t -> Pointwise.add(t[0], t[1]), a, other);
      add("add alpha " + s, t -> Pointwise.add(t[0], t[1], 2.5), a, other);
      add("sub " + s, t -> Pointwise.sub(t[0], t[1]), a, other);
      add("sub alpha " + s, t -> Pointwise.sub(t[0], t[1], 2), a, other);
      add("mul " + s, t -> Pointwise.mul(t[0], t[1]), a, other);
      add("div " + s, t -> Pointwise.div(t[0], t[1]), a, other);
      add("pow " + s, t -> Pointwise.pow(Unary.abs(t[0]), t[1]), a, other);
      add("maximum " + s, t -> Pointwise.maximum(t[0], t[1]), a, other);
      add("minimum " + s, t -> Pointwise.minimum(t[0], t[1]), a, other);
      add("addcmul " + s, t -> Pointwise.addcmul(t[0], t[1], t[2], 0.5), a, other, b);
      add("addcdiv " + s, t -> Pointwise.addcdiv(t[0], t[1], t[2], 0.5), a, other, b);
      add("atan2 " + s, t -> Unary.atan2(t[0], t[1]), a, other);
    }
    add("outer sum", t -> Pointwise.add(t[0], t[1]), row, column);
    unary("add_scalar", x -> Pointwise.add(x, 2), a);
    unary("sub_scalar", x -> Pointwise.sub(x, 2.5), a);
    unary("rsub_scalar", x -> Pointwise.rsub(x, 2.5), a);
    unary("mul_scalar", x -> Pointwise.mul(x, -3), a);
    unary("div_scalar", x -> Pointwise.div(x, 3), a);
    unary("rdiv_scalar", x -> Pointwise.rdiv(x, 3), b);
    unary("pow 2", x -> Pointwise.pow(x, 2), a);
    unary("pow 3", x -> Pointwise.pow(x, 3), a);
    unary("pow 0.5", x -> Pointwise.pow(x, 0.5), b);
    unary("pow 0", x -> Pointwise.pow(x, 0), b);
    unary("pow -1", x -> Pointwise.pow(x, -1.0), b);
    add("lerp", t -> Pointwise.lerp(t[0], t[1], t[2]), a, b, spread(0.1, 0.9, 4, 2, 3));
    add("lerp_scalar", t -> Pointwise.lerp(t[0], t[1], 0.3), a, b);
    Tensor mask = Compare.gt(a, 0);
    add("where", t -> Compare.where(mask, t[0], t[1]), a, row);
    add("masked_fill", t -> Compare.maskedFill(t[0], mask, 5), a);
    add("masked_fill broadcast", t -> Compare.maskedFill(t[0], mask, 5), row);
  }

  private static void functions() {
    Tensor a = values(2, 3);
    Tensor wide = spread(-4, 4, 3, 2, 5);
    Tensor b = positive(2, 3);
    unary("neg", Unary::neg, a);
    unary("abs", Unary::abs, a);
    unary("sign", Unary::sign, a);
    unary("floor", Unary::floor, a);
    unary("ceil", Unary::ceil, a);
    unary("round", Unary::round, a);
    unary("square", Unary::square, a);
    unary("exp", Unary::exp, a);
    unary("log", Unary::log, b);
    unary("log1p", Unary::log1p, b);
    unary("sqrt", Unary::sqrt, b);
    unary("rsqrt", Unary::rsqrt, b);
    unary("reciprocal", Unary::reciprocal, b);
    unary("sin", Unary::sin, a);
    unary("cos", Unary::cos, a);
    unary("erf", Unary::erf, wide);
    unary("clamp", x -> Unary.clamp(x, -0.5, 0.3), a);
    unary("clamp min", x -> Unary.clamp(x, 0.1, null), a);
    unary("relu", Activations::relu, a);
    unary("leaky_relu", x -> Activations.leakyRelu(x, 0.1), a);
    unary("sigmoid", Activations::sigmoid, wide);
    unary("tanh", Activations::tanh, wide);
    unary("silu", Activations::silu, wide);
    unary("gelu", Activations::gelu, wide);
    unary("gelu tanh", x -> Activations.gelu(x, "tanh"), wide);
    unary("dropout", x -> Random.dropout(x, 0.3, true, new Generator(5)), a);
    unary("clone", Casts::copy, a);
    // Sixteenths are exact in float32, so finite differences of the way there and back are, too.
    add(
        "to",
        t -> Casts.to(Casts.to(Unary.floor(Pointwise.mul(t[0], 16)), DType.FLOAT32), DType.FLOAT64),
        a);
  }

  private static void inPlace() {
    Tensor a = values(2, 3);
    Tensor row = spread(0.5, 2, 7, 3);
    Tensor b = positive(2, 3);
    Function<Tensor, Tensor> base = x -> Pointwise.mul(x, 2);
    add("add_", t -> InPlace.add(base.apply(t[0]), t[1]), a, row);
    add("add_ alpha", t -> InPlace.add(base.apply(t[0]), t[1], 0.5), a, row);
    add("sub_", t -> InPlace.sub(base.apply(t[0]), t[1]), a, row);
    add("sub_ alpha", t -> InPlace.sub(base.apply(t[0]), t[1], 3), a, row);
    add("mul_", t -> InPlace.mul(base.apply(t[0]), row), a);
    add("div_", t -> InPlace.div(base.apply(t[0]), t[1]), a, row);
    add("add_scalar_", t -> InPlace.add(base.apply(t[0]), 2), a);
    add("sub_scalar_", t -> InPlace.sub(base.apply(t[0]), 2), a);
    add("mul_scalar_", t -> InPlace.mul(base.apply(t[0]), 2), a);
    add("div_scalar_", t -> InPlace.div(base.apply(t[0]), 3), a);
    add("addcmul_", t -> InPlace.addcmul(base.apply(t[0]), t[1], t[2], 0.5), a, row, b);
    add("addcdiv_", t -> InPlace.addcdiv(base.apply(t[0]), t[1], t[2], 0.5), a, row, b);
    add("lerp_scalar_", t -> InPlace.lerp(base.apply(t[0]), t[1], 0.3), a, b);
    add("relu_", t -> InPlace.relu(base.apply(t[0])), a);
    add("fill_", t -> InPlace.fill(base.apply(t[0]), 2), a);
    add("zero_", t -> InPlace.zero(base.apply(t[0])), a);
    add("copy_", t -> InPlace.copy(base.apply(t[0]), t[1]), a, row);
    Tensor mask = Compare.gt(a, 0);
    add("masked_fill_", t -> InPlace.maskedFill(base.apply(t[0]), mask, 3), a);
  }

  private static void reductions() {
    Tensor a = values(2, 3, 4);
    int[][] all = {{}, {0}, {1}, {-1}, {0, 2}};
    for (int[] dims : all) {
      for (boolean keep : new boolean[] {false, true}) {
        String s = java.util.Arrays.toString(dims) + keep;
        add("sum" + s, t -> Reductions.sum(t[0], dims, keep), a);
        add("mean" + s, t -> Reductions.mean(t[0], dims, keep), a);
        add("amax" + s, t -> Extrema.amax(t[0], dims, keep), a);
        add("amin" + s, t -> Extrema.amin(t[0], dims, keep), a);
        add("prod" + s, t -> Reductions.prod(t[0], dims, keep), a);
        add("var" + s, t -> Statistics.var(t[0], dims, 1, keep), a);
        add("std" + s, t -> Statistics.std(t[0], dims, 0, keep), a);
        add("logsumexp" + s, t -> Reductions.logSumExp(t[0], dims, keep), a);
        for (double p : new double[] {0, 1, 2, 3, Double.POSITIVE_INFINITY}) {
          add("norm" + p + s, t -> Statistics.vectorNorm(t[0], p, dims, keep), a);
        }
      }
    }
    for (int d : new int[] {0, 1, 2}) {
      add("max" + d, t -> Extrema.max(t[0], d, false)[0], a);
      add("min" + d, t -> Extrema.min(t[0], d, true)[0], a);
      add("cumsum" + d, t -> Reductions.cumsum(t[0], d), a);
      add("softmax" + d, t -> Softmaxes.softmax(t[0], d), a);
      add("log_softmax" + d, t -> Softmaxes.logSoftmax(t[0], d), a);
    }
    for (int d : new int[] {0, -1}) {
      add("sort" + d, t -> Ordering.sort(t[0], d, true)[0], a);
      add("topk" + d, t -> Ordering.topk(t[0], 2, d, false)[0], a);
      add("roll" + d, t -> Rearrange.roll(t[0], new long[] {1}, d), a);
    }
    add("flip", t -> Rearrange.flip(t[0], 0, 2), a);
    add("whole_dim", t -> Dispatcher.call(Catalogue.get("whole_dim"), Attrs.of(1, false), t[0]), a);
    add("repeat", t -> Rearrange.repeat(t[0], 2, 1, 3), values(2, 3));
    add("sum_to_size", t -> Reductions.sumToSize(t[0], 3, 1), a);
  }

  private static void views() {
    Tensor a = values(2, 3, 4);
    add("reshape", t -> Views.reshape(t[0], 6, 4), a);
    add("reshape of a transpose", t -> Views.reshape(Views.transpose(t[0], 0, 2), 12, 2), a);
    add("view", t -> Views.view(t[0], 2, -1), a);
    add("permute", t -> Views.permute(t[0], 2, 0, 1), a);
    add("transpose", t -> Views.transpose(t[0], 0, 2), a);
    add("slice", t -> Views.slice(t[0], 2, 1, 4, 2), a);
    add("select", t -> Views.select(t[0], 1, -1), a);
    add("squeeze", t -> Views.squeeze(t[0]), values(1, 3, 1));
    add("squeeze one", t -> Views.squeeze(t[0], -1), values(1, 3, 1));
    add("unsqueeze", t -> Views.unsqueeze(t[0], -1), a);
    add("expand", t -> Views.expand(t[0], 2, 3, 4), values(3, 1));
    add("split", t -> Pointwise.mul(Splits.split(t[0], 2, 2).get(1), 2), a);
    add("unbind", t -> Splits.unbind(t[0], 0).get(1), a);
    add("cat", t -> Joins.cat(List.of(t[0], t[1]), 1), a, values(2, 1, 4));
    add("stack", t -> Joins.stack(List.of(t[0], t[1]), 1), a, spread(-1, 1, 6, 2, 3, 4));
    add("tril", t -> Indexing.tril(t[0], 0), a);
    add("triu", t -> Indexing.triu(t[0], 1), a);
  }

  private static void products() {
    Tensor m = values(3, 4);
    Tensor n = spread(-1, 1, 5, 4, 2);
    Tensor v = spread(-1, 1, 6, 4);
    Tensor batch = values(2, 3, 4);
    add("mm", t -> MatMul.mm(t[0], t[1]), m, n);
    add("mm transposed", t -> MatMul.mm(Views.t(t[1]), Views.t(t[0])), m, n);
    add("bmm", t -> MatMul.bmm(t[0], t[1]), batch, spread(-1, 1, 4, 2, 4, 2));
    add("matmul 2 2", t -> MatMul.matmul(t[0], t[1]), m, n);
    add("matmul 1 1", t -> MatMul.matmul(t[0], t[1]), v, spread(-1, 1, 9, 4));
    add("matmul 2 1", t -> MatMul.matmul(t[0], t[1]), m, v);
    add("matmul 1 2", t -> MatMul.matmul(t[0], t[1]), v, n);
    add("matmul 3 2", t -> MatMul.matmul(t[0], t[1]), batch, n);
    add("matmul 3 1", t -> MatMul.matmul(t[0], t[1]), batch, v);
    add("matmul 1 3", t -> MatMul.matmul(t[0], t[1]), spread(-1, 1, 2, 3), batch);
    add("matmul 2 3", t -> MatMul.matmul(t[0], t[1]), spread(-1, 1, 2, 5, 3), batch);
    add(
        "matmul broadcast",
        t -> MatMul.matmul(t[0], t[1]),
        spread(-1, 1, 2, 2, 1, 3, 4),
        spread(-1, 1, 4, 2, 4, 2));
    add("contract_leading", t -> MatMul.contractLeading(t[0], t[1]), batch, values(2, 3, 2));
    Tensor w = spread(-1, 1, 8, 5, 4);
    Tensor bias = spread(-1, 1, 9, 5);
    add("linear", t -> MatMul.linear(t[0], t[1], t[2]), batch, w, bias);
    add("linear no bias", t -> MatMul.linear(t[0], t[1], null), m, w);
    add("linear of a vector", t -> MatMul.linear(t[0], t[1], t[2]), v, w, bias);
    add("addmm", t -> MatMul.addmm(t[0], t[1], t[2]), values(2), m, n);
    add("addmm scaled", t -> MatMul.addmm(t[0], t[1], t[2], 0.5, 2), values(3, 2), m, n);
    add(
        "baddbmm",
        t -> MatMul.baddbmm(t[0], t[1], t[2], 0.5, 2),
        values(3, 2),
        batch,
        spread(-1, 1, 4, 2, 4, 2));
    add("dot", t -> MatMul.dot(t[0], t[1]), v, spread(-1, 1, 9, 4));
    add("outer", t -> MatMul.outer(t[0], t[1]), v, values(3));
    Tensor[] tables = Attention.ropeTables(3, 4, 100);
    Tensor cos = Casts.to(tables[0], DType.FLOAT64);
    Tensor sin = Casts.to(tables[1], DType.FLOAT64);
    add("rope", t -> Attention.rope(t[0], cos, sin, 1), values(2, 3, 2, 4));
    Tensor query = values(2, 3, 2, 4);
    Tensor key = spread(-1, 1, 8, 2, 3, 2, 4);
    Tensor value = spread(-1, 1, 9, 2, 3, 2, 4);
    for (int d : new int[] {1, 2}) {
      for (boolean causal : new boolean[] {false, true}) {
        add(
            "scaled_dot_product_attention along " + d + (causal ? " causal" : ""),
            t -> Attention.scaledDotProduct(t[0], t[1], t[2], causal, d),
            query,
            key,
            value);
      }
    }
    add(
        "scaled_dot_product_attention of more keys than queries",
        t -> Attention.scaledDotProduct(t[0], t[1], t[2], true, 2),
        values(1, 2, 2, 4),
        spread(-1, 1, 8, 1, 2, 5, 4),
        spread(-1, 1, 9, 1, 2, 5, 4));
    add("swiglu", t -> Gated.swiglu(t[0], t[1]), values(2, 3), spread(-1, 1, 3, 2, 3));
    add(
        "attention",
        t -> Attention.scaledDotProduct(t[0], t[1], t[2], Attention.causalMask(3, 3)),
        values(2, 3, 4),
        spread(-1, 1, 4, 2, 3, 4),
        spread(-1, 1, 5, 2, 3, 4));
  }

  private static void losses() {
    Tensor logits = spread(-2, 2, 3, 4, 3);
    Tensor target = longs(new long[] {4}, 2, 0, 1, 2);
    for (String r : List.of("mean", "sum", "none")) {
      add("cross_entropy " + r, t -> Losses.crossEntropy(t[0], t[1], r, 1, 0.1), logits, target);
      add(
          "cross_entropy plain " + r,
          t -> Losses.crossEntropy(t[0], t[1], r, -100, 0),
          logits,
          target);
      add("nll_loss " + r, t -> Losses.nllLoss(t[0], t[1], r, 1), logits, target);
      add("mse_loss " + r, t -> Losses.mseLoss(t[0], t[1], r), logits, values(4, 3));
    }
    add(
        "cross_entropy of images",
        t -> Losses.crossEntropy(t[0], t[1]),
        spread(-2, 2, 3, 2, 3, 2),
        longs(new long[] {2, 2}, 2, 0, 1, 1));
    add(
        "cross_entropy of one",
        t -> Losses.crossEntropy(t[0], t[1]),
        values(3),
        longs(new long[0], 1));
    Tensor x = values(2, 3, 4);
    Tensor w = spread(0.5, 2, 2, 4);
    Tensor b = spread(-1, 1, 7, 4);
    add("rms_norm", t -> Norms.rmsNorm(t[0], new long[] {4}, t[1], 1e-5), x, w);
    add("rms_norm plain", t -> Norms.rmsNorm(t[0], new long[] {3, 4}, null, null), x);
    add("layer_norm", t -> Norms.layerNorm(t[0], new long[] {4}, t[1], t[2], 1e-5), x, w, b);
    add("layer_norm plain", t -> Norms.layerNorm(t[0], new long[] {3, 4}, null, null, 1e-5), x);
  }

  private static void indexing() {
    Tensor table = values(5, 3);
    add(
        "embedding",
        t -> Indexing.embedding(t[0], t[1]),
        table,
        longs(new long[] {2, 2}, 4, 0, 4, 1));
    add(
        "index_select",
        t -> Indexing.indexSelect(t[0], 0, t[1]),
        table,
        longs(new long[] {3}, 4, 0, 4));
    add(
        "index_select columns",
        t -> Indexing.indexSelect(t[0], -1, t[1]),
        table,
        longs(new long[] {3}, 2, 0, 2));
    add("index", t -> Indexing.index(t[0], t[1]), table, longs(new long[] {2, 2}, 4, 0, 4, 1));
    add(
        "gather",
        t -> Indexing.gather(t[0], 1, t[1]),
        table,
        longs(new long[] {2, 3}, 2, 0, 2, 1, 1, 0));
    add(
        "scatter_add",
        t -> Indexing.scatterAdd(t[0], 0, t[1], t[2]),
        table,
        longs(new long[] {2, 3}, 2, 0, 2, 1, 1, 0),
        values(2, 3));
  }

  static List<Case> cases() {
    return CASES;
  }

  @TestFactory
  Stream<DynamicTest> gradientsAgreeWithFiniteDifferences() {
    return CASES.stream()
        .map(c -> DynamicTest.dynamicTest(c.name(), () -> GradCheck.check(c.f(), c.inputs())));
  }
}
