package dev.weft.tensor.op;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.ForwardCases.Args;
import dev.weft.tensor.op.ForwardCases.Case;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * Every operator against what PyTorch computes: values, shapes, dtypes and refusals. The cases come
 * from {@code src/test/oracle/forward_cases.py}.
 */
class ForwardTest {
  private static final Map<String, BiFunction<Tensor[], Args, List<Tensor>>> OPS = new HashMap<>();

  private static void op(String name, BiFunction<Tensor[], Args, Tensor> f) {
    OPS.put(name, (t, a) -> List.of(f.apply(t, a)));
  }

  private static void unary(String name, Function<Tensor, Tensor> f) {
    op(name, (t, a) -> f.apply(t[0]));
  }

  private static void binary(String name, BiFunction<Tensor, Tensor, Tensor> f) {
    op(name, (t, a) -> f.apply(t[0], t[1]));
  }

  private static void scalar(String name, BiFunction<Tensor, Number, Tensor> f) {
    op(name, (t, a) -> f.apply(t[0], a.number("value")));
  }

  private interface Reduction {
    Tensor apply(Tensor x, int[] dims, boolean keep);
  }

  private static void reduction(String name, Reduction f) {
    op(name, (t, a) -> f.apply(t[0], a.ints("dim"), a.flag("keepdim")));
  }

  static {
    binary("add", Pointwise::add);
    binary("sub", Pointwise::sub);
    binary("mul", Pointwise::mul);
    binary("div", Pointwise::div);
    binary("pow", Pointwise::pow);
    binary("maximum", Pointwise::maximum);
    binary("minimum", Pointwise::minimum);
    binary("atan2", Unary::atan2);
    binary("eq", Compare::eq);
    binary("lt", Compare::lt);
    binary("ge", Compare::ge);
    binary("logical_and", Compare::logicalAnd);
    binary("add_", InPlace::add);
    binary("copy_", InPlace::copy);
    scalar("add_scalar", Pointwise::add);
    scalar("sub_scalar", Pointwise::sub);
    scalar("mul_scalar", Pointwise::mul);
    scalar("div_scalar", Pointwise::div);
    scalar("rsub_scalar", Pointwise::rsub);
    scalar("rdiv_scalar", Pointwise::rdiv);
    scalar("pow_scalar", Pointwise::pow);
    scalar("eq_scalar", Compare::eq);
    scalar("gt_scalar", Compare::gt);
    scalar("mul_scalar_", InPlace::mul);
    scalar("fill_", InPlace::fill);
    op("where", (t, a) -> Compare.where(t[0], t[1], t[2]));
    op("masked_fill", (t, a) -> Compare.maskedFill(t[0], t[1], a.number("value")));
    op("addcmul", (t, a) -> Pointwise.addcmul(t[0], t[1], t[2], a.number("value")));
    op("addcdiv", (t, a) -> Pointwise.addcdiv(t[0], t[1], t[2], a.number("value")));
    op("lerp", (t, a) -> Pointwise.lerp(t[0], t[1], t[2]));
    op("to", (t, a) -> Casts.to(t[0], DType.of(a.text("dtype"))));
    op("clamp", (t, a) -> Unary.clamp(t[0], a.numberOrNull("min"), a.numberOrNull("max")));
    functions();
    reductions();
    shapes();
    neural();
  }

  private static void functions() {
    unary("neg", Unary::neg);
    unary("abs", Unary::abs);
    unary("sign", Unary::sign);
    unary("square", Unary::square);
    unary("exp", Unary::exp);
    unary("log", Unary::log);
    unary("log1p", Unary::log1p);
    unary("sin", Unary::sin);
    unary("cos", Unary::cos);
    unary("sqrt", Unary::sqrt);
    unary("rsqrt", Unary::rsqrt);
    unary("reciprocal", Unary::reciprocal);
    unary("erf", Unary::erf);
    unary("floor", Unary::floor);
    unary("ceil", Unary::ceil);
    unary("round", Unary::round);
    unary("isnan", Unary::isNan);
    unary("logical_not", Compare::logicalNot);
    unary("sigmoid", Activations::sigmoid);
    unary("tanh", Activations::tanh);
    unary("relu", Activations::relu);
    unary("silu", Activations::silu);
    op("gelu", (t, a) -> Activations.gelu(t[0], a.text("approximate")));
    op("leaky_relu", (t, a) -> Activations.leakyRelu(t[0], a.real("slope")));
  }

  private static void reductions() {
    reduction("sum", Reductions::sum);
    reduction("mean", Reductions::mean);
    reduction("prod", Reductions::prod);
    reduction("amax", Extrema::amax);
    reduction("amin", Extrema::amin);
    reduction("all", Reductions::all);
    reduction("any", Reductions::any);
    reduction("logsumexp", Reductions::logSumExp);
    op("argmax", (t, a) -> arg(t[0], a, true));
    op("argmin", (t, a) -> arg(t[0], a, false));
    OPS.put("max", (t, a) -> List.of(Extrema.max(t[0], a.whole("dim"), a.flag("keepdim"))));
    OPS.put("min", (t, a) -> List.of(Extrema.min(t[0], a.whole("dim"), a.flag("keepdim"))));
    op("cumsum", (t, a) -> Reductions.cumsum(t[0], a.whole("dim")));
    op(
        "var",
        (t, a) -> Statistics.var(t[0], a.ints("dim"), a.real("correction"), a.flag("keepdim")));
    op(
        "std",
        (t, a) -> Statistics.std(t[0], a.ints("dim"), a.real("correction"), a.flag("keepdim")));
    op(
        "vector_norm",
        (t, a) -> Statistics.vectorNorm(t[0], a.real("ord"), a.ints("dim"), a.flag("keepdim")));
  }

  private static Tensor arg(Tensor x, Args a, boolean max) {
    if (!a.has("dim")) {
      return max ? Extrema.argmax(x) : Extrema.argmin(x);
    }
    return max
        ? Extrema.argmax(x, a.whole("dim"), a.flag("keepdim"))
        : Extrema.argmin(x, a.whole("dim"), a.flag("keepdim"));
  }

  private static void shapes() {
    unary("t", Views::t);
    unary("squeeze", x -> Views.squeeze(x));
    op("reshape", (t, a) -> Views.reshape(t[0], a.longs("shape")));
    op(
        "reshape_of_transpose",
        (t, a) -> Views.reshape(Views.transpose(t[0], 0, 2), a.longs("shape")));
    op("permute", (t, a) -> Views.permute(t[0], a.ints("dims")));
    op("expand", (t, a) -> Views.expand(t[0], a.longs("shape")));
    op("unsqueeze", (t, a) -> Views.unsqueeze(t[0], a.whole("dim")));
    op("unflatten", (t, a) -> Views.unflatten(t[0], a.whole("dim"), a.longs("shape")));
    op("flatten", (t, a) -> Views.flatten(t[0], a.ints("args")[0], a.ints("args")[1]));
    op("movedim", (t, a) -> Views.movedim(t[0], a.ints("args")[0], a.ints("args")[1]));
    op(
        "slice",
        (t, a) -> {
          int[] s = a.ints("args");
          return Views.slice(t[0], s[0], s[1], s[2], s[3]);
        });
    op(
        "narrow",
        (t, a) -> Views.narrow(t[0], a.ints("args")[0], a.ints("args")[1], a.ints("args")[2]));
    OPS.put("split", (t, a) -> Splits.split(t[0], a.whole("size"), a.whole("dim")));
    OPS.put("chunk", (t, a) -> Splits.chunk(t[0], a.whole("chunks"), a.whole("dim")));
    OPS.put("unbind", (t, a) -> Splits.unbind(t[0], a.whole("dim")));
    op("cat", (t, a) -> Joins.cat(Arrays.asList(t), a.whole("dim")));
    op("stack", (t, a) -> Joins.stack(Arrays.asList(t), a.whole("dim")));
    op("tril", (t, a) -> Indexing.tril(t[0], a.whole("diagonal")));
    op("triu", (t, a) -> Indexing.triu(t[0], a.whole("diagonal")));
    op("flip", (t, a) -> Rearrange.flip(t[0], a.ints("dims")));
    op("roll", (t, a) -> Rearrange.roll(t[0], new long[] {a.ints("args")[0]}, a.ints("args")[1]));
    op("repeat", (t, a) -> Rearrange.repeat(t[0], a.longs("repeats")));
    OPS.put("sort", (t, a) -> List.of(Ordering.sort(t[0], a.whole("dim"), a.flag("descending"))));
    OPS.put("topk", (t, a) -> List.of(Ordering.topk(t[0], a.whole("k"), a.whole("dim"), true)));
    binary("index", Indexing::index);
    binary("embedding", Indexing::embedding);
    op("index_select", (t, a) -> Indexing.indexSelect(t[0], a.whole("dim"), t[1]));
    op("gather", (t, a) -> Indexing.gather(t[0], a.whole("dim"), t[1]));
    op("scatter_add", (t, a) -> Indexing.scatterAdd(t[0], a.whole("dim"), t[1], t[2]));
  }

  private static void neural() {
    binary("matmul", MatMul::matmul);
    binary("bmm", MatMul::bmm);
    binary("dot", MatMul::dot);
    binary("outer", MatMul::outer);
    op("linear", (t, a) -> MatMul.linear(t[0], t[1], t[2]));
    op("addmm", (t, a) -> MatMul.addmm(t[0], t[1], t[2], a.real("beta"), a.real("alpha")));
    op("softmax", (t, a) -> Softmaxes.softmax(t[0], a.whole("dim")));
    op("log_softmax", (t, a) -> Softmaxes.logSoftmax(t[0], a.whole("dim")));
    op(
        "rms_norm",
        (t, a) ->
            Norms.rmsNorm(
                t[0],
                a.longs("shape"),
                t.length > 1 ? t[1] : null,
                a.has("eps") ? a.real("eps") : null));
    op(
        "layer_norm",
        (t, a) ->
            Norms.layerNorm(
                t[0],
                a.longs("shape"),
                t.length > 1 ? t[1] : null,
                t.length > 2 ? t[2] : null,
                a.real("eps")));
    op(
        "cross_entropy",
        (t, a) ->
            Losses.crossEntropy(
                t[0], t[1], a.text("reduction"), a.whole("ignore"), a.real("smoothing")));
    op("nll_loss", (t, a) -> Losses.nllLoss(t[0], t[1], a.text("reduction"), a.whole("ignore")));
    op("mse_loss", (t, a) -> Losses.mseLoss(t[0], t[1], a.text("reduction")));
  }

  @TestFactory
  Stream<DynamicTest> agreesWithPyTorch() {
    return tests(t -> t, t -> t, 1);
  }

  /** P28, P59: no operator depends on how its inputs lie in memory. */
  @TestFactory
  Stream<DynamicTest> agreesForInputsOfAnotherLayout() {
    return tests(ForwardCases::strided, t -> t, 1);
  }

  /**
   * A test for each operator.
   *
   * @param layout what is done to each input
   * @param back what brings a result to the CPU
   * @param tolerance a factor for what is allowed on the CPU
   */
  static Stream<DynamicTest> tests(
      UnaryOperator<Tensor> layout, UnaryOperator<Tensor> back, double tolerance) {
    Map<String, List<Case>> byOp =
        ForwardCases.read().stream()
            .collect(Collectors.groupingBy(Case::op, TreeMap::new, Collectors.toList()));
    assertThat(byOp).hasSizeGreaterThan(80);
    return byOp.entrySet().stream()
        .map(
            e ->
                DynamicTest.dynamicTest(
                    e.getKey(),
                    () -> {
                      List<String> wrong =
                          e.getValue().stream()
                              .map(c -> difference(c, layout, back, tolerance))
                              .filter(d -> d != null)
                              .toList();
                      assertThat(wrong).isEmpty();
                    }));
  }

  /** What differs, or null. */
  private static String difference(
      Case c, UnaryOperator<Tensor> layout, UnaryOperator<Tensor> back, double tolerance) {
    List<Tensor> out;
    try (TensorScope scope = TensorScope.open()) {
      try {
        Tensor[] in = Arrays.stream(c.inputs()).map(layout).toArray(Tensor[]::new);
        out = OPS.get(c.op()).apply(in, c.args()).stream().map(back).toList();
      } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
        boolean named = String.valueOf(e.getMessage()).startsWith(messageName(c.op()));
        return c.expected() == null && named ? null : c + ": refused: " + e.getMessage();
      }
      if (c.expected() == null) {
        return c + ": not refused";
      }
      String got = out.stream().map(ForwardCases::format).collect(Collectors.joining("|"));
      for (int i = 0; i < c.expected().size(); i++) {
        if (scope.size() == 0 || !ForwardCases.close(out.get(i), c.expected().get(i), tolerance)) {
          return c + ": got " + got;
        }
      }
      return out.size() == c.expected().size() ? null : c + ": got " + got;
    }
  }

  private static String messageName(String op) {
    return op.equals("reshape_of_transpose") ? "reshape" : op.equals("t") ? "t" : op;
  }
}
