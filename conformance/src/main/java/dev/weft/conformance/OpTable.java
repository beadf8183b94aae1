package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.dtensor.tp.LossParallel;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Attention;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Compare;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Extrema;
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
import dev.weft.tensor.op.Views;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BinaryOperator;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** The operators of the golden files: name and attributes to a call of the catalogue. */
final class OpTable {
  /** A call; its result is a Tensor, a list of them, or a Boolean. */
  private interface Call {
    Object run(List<Tensor> t, OpArgs a);
  }

  private static final Map<String, Call> CALLS = new HashMap<>();

  private OpTable() {}

  /**
   * Runs an operator.
   *
   * @return its results: tensors, or a Boolean
   */
  static List<Object> call(String op, JsonNode attrs, List<Tensor> tensors) {
    Call call = CALLS.get(op);
    if (call == null) {
      throw new CaseRunner.Mismatch("no operator of the catalogue is mapped to '" + op + "'");
    }
    Object out = call.run(tensors, new OpArgs(attrs));
    return out instanceof List<?> l
        ? List.copyOf(l)
        : out instanceof Tensor[] array ? List.of((Object[]) array) : List.of(out);
  }

  private static void one(String name, UnaryOperator<Tensor> f) {
    CALLS.put(name, (t, a) -> f.apply(t.get(0)));
  }

  private static void two(String name, BinaryOperator<Tensor> f) {
    CALLS.put(name, (t, a) -> f.apply(t.get(0), t.get(1)));
  }

  private static void put(String name, Call call) {
    CALLS.put(name, call);
  }

  static {
    elementwise();
    binary();
    inPlace();
    products();
    shapes();
    indexing();
    reductions();
    neural();
  }

  private static void elementwise() {
    one("neg", Unary::neg);
    one("exp", Unary::exp);
    one("log", Unary::log);
    one("log1p", Unary::log1p);
    one("sqrt", Unary::sqrt);
    one("rsqrt", Unary::rsqrt);
    one("reciprocal", Unary::reciprocal);
    one("abs", Unary::abs);
    one("sin", Unary::sin);
    one("cos", Unary::cos);
    one("floor", Unary::floor);
    one("sign", Unary::sign);
    one("square", Unary::square);
    one("erf", Unary::erf);
    one("isnan", Unary::isNan);
    one("relu", Activations::relu);
    one("sigmoid", Activations::sigmoid);
    one("tanh", Activations::tanh);
    one("silu", Activations::silu);
    one("logical_not", Compare::logicalNot);
    one("clone", Casts::copy);
    one("zeros_like", Creation::zerosLike);
    one("ones_like", Creation::onesLike);
    put("leaky_relu", (t, a) -> Activations.leakyRelu(t.get(0), a.real("negative_slope", 0.01)));
    put("gelu", (t, a) -> Activations.gelu(t.get(0), a.text("approximate", "none")));
    put("clamp", (t, a) -> Unary.clamp(t.get(0), a.number("min"), a.number("max")));
    put("to_dtype", (t, a) -> Casts.to(t.get(0), DType.of(a.text("dtype", ""))));
    put("dropout_eval", (t, a) -> Random.dropout(t.get(0), 0.5, false, null));
    put("dropout_p0", (t, a) -> Random.dropout(t.get(0), 0, true, null));
    put("tril", (t, a) -> Indexing.tril(t.get(0), a.integer("diagonal", 0, 0)));
    put("triu", (t, a) -> Indexing.triu(t.get(0), a.integer("diagonal", 0, 0)));
    put("add_scalar", (t, a) -> Pointwise.add(t.get(0), a.value()));
    put("sub_scalar", (t, a) -> Pointwise.sub(t.get(0), a.value()));
    put("mul_scalar", (t, a) -> Pointwise.mul(t.get(0), a.value()));
    put("div_scalar", (t, a) -> Pointwise.div(t.get(0), a.value()));
    put("rsub_scalar", (t, a) -> Pointwise.rsub(t.get(0), a.value()));
    put("rdiv_scalar", (t, a) -> Pointwise.rdiv(t.get(0), a.value()));
    put("pow_scalar", (t, a) -> Pointwise.pow(t.get(0), a.value()));
    put("eq_scalar", (t, a) -> Compare.eq(t.get(0), a.value()));
    put("gt_scalar", (t, a) -> Compare.gt(t.get(0), a.value()));
  }

  private static void binary() {
    put("add", (t, a) -> Pointwise.add(t.get(0), t.get(1), a.number("alpha", 1)));
    put("sub", (t, a) -> Pointwise.sub(t.get(0), t.get(1), a.number("alpha", 1)));
    two("mul", Pointwise::mul);
    two("div", Pointwise::div);
    two("pow", Pointwise::pow);
    two("maximum", Pointwise::maximum);
    two("minimum", Pointwise::minimum);
    two("atan2", Unary::atan2);
    two("eq", Compare::eq);
    two("ne", Compare::ne);
    two("lt", Compare::lt);
    two("le", Compare::le);
    two("gt", Compare::gt);
    two("ge", Compare::ge);
    two("logical_and", Compare::logicalAnd);
    put("lerp", (t, a) -> Pointwise.lerp(t.get(0), t.get(1), t.get(2)));
    put("where", (t, a) -> Compare.where(t.get(0), t.get(1), t.get(2)));
    put("masked_fill", (t, a) -> Compare.maskedFill(t.get(0), t.get(1), a.value()));
    put("addcmul", (t, a) -> Pointwise.addcmul(t.get(0), t.get(1), t.get(2), a.number("value", 1)));
    put("equal", (t, a) -> Compare.equal(t.get(0), t.get(1)));
    put(
        "allclose",
        (t, a) ->
            Compare.allClose(
                t.get(0),
                t.get(1),
                a.real("rtol", 1e-5),
                a.real("atol", 1e-8),
                a.flag("equal_nan")));
  }

  private static void inPlace() {
    two("add_", InPlace::add);
    two("mul_", InPlace::mul);
    two("copy_", InPlace::copy);
    one("relu_", InPlace::relu);
    one("zero_", InPlace::zero);
    put("add_scalar_", (t, a) -> InPlace.add(t.get(0), a.value()));
    put("mul_scalar_", (t, a) -> InPlace.mul(t.get(0), a.value()));
    put("fill_", (t, a) -> InPlace.fill(t.get(0), a.value()));
  }

  private static void products() {
    two("mm", MatMul::mm);
    two("bmm", MatMul::bmm);
    two("matmul", MatMul::matmul);
    two("dot", MatMul::dot);
    two("outer", MatMul::outer);
    put("linear", (t, a) -> MatMul.linear(t.get(0), t.get(1), t.size() > 2 ? t.get(2) : null));
    put(
        "addmm",
        (t, a) ->
            MatMul.addmm(t.get(0), t.get(1), t.get(2), a.real("beta", 1), a.real("alpha", 1)));
    put(
        "baddbmm",
        (t, a) ->
            MatMul.baddbmm(t.get(0), t.get(1), t.get(2), a.real("beta", 1), a.real("alpha", 1)));
  }

  private static void shapes() {
    one("t", Views::t);
    put("transpose", (t, a) -> Views.transpose(t.get(0), a.at(0), a.at(1)));
    put("permute", (t, a) -> Views.permute(t.get(0), a.dimsAt(0)));
    put("movedim", (t, a) -> Views.movedim(t.get(0), a.at(0), a.at(1)));
    put("view", (t, a) -> Views.view(t.get(0), a.sizes("shape")));
    put("reshape", (t, a) -> Views.reshape(t.get(0), a.sizesAt(0)));
    put("flatten", (t, a) -> Views.flatten(t.get(0), a.at(0, 0), a.at(1, -1)));
    put("unflatten", (t, a) -> Views.unflatten(t.get(0), a.at(0), a.sizesAt(1)));
    put("squeeze", (t, a) -> Views.squeeze(t.get(0), a.hasArgs() ? a.dimsAt(0) : new int[0]));
    put("unsqueeze", (t, a) -> Views.unsqueeze(t.get(0), a.at(0)));
    put("expand", (t, a) -> Views.expand(t.get(0), a.sizes("shape")));
    put("repeat", (t, a) -> Rearrange.repeat(t.get(0), a.sizes("repeats")));
    put("flip", (t, a) -> Rearrange.flip(t.get(0), a.dimsAt(0)));
    put("roll", (t, a) -> Rearrange.roll(t.get(0), a.shifts(), a.rollDims()));
    put("cat", (t, a) -> Joins.cat(t, a.at("dim", 0)));
    put("stack", (t, a) -> Joins.stack(t, a.at("dim", 0)));
    put(
        "split",
        (t, a) ->
            a.isList(0)
                ? Splits.split(t.get(0), a.sizesAt(0), a.at("dim", 0))
                : Splits.split(t.get(0), a.at(0), a.at("dim", 0)));
    put("chunk", (t, a) -> Splits.chunk(t.get(0), a.at(0), a.at("dim", 0)));
    put("unbind", (t, a) -> Splits.unbind(t.get(0), a.at("dim", 0)));
  }

  private static void indexing() {
    put("narrow", (t, a) -> Views.narrow(t.get(0), a.at(0), a.at(1), a.at(2)));
    put("select", (t, a) -> Views.select(t.get(0), a.at(0), a.at(1)));
    put("slice", (t, a) -> a.slice(t.get(0)));
    put("index_select", (t, a) -> Indexing.indexSelect(t.get(0), a.at("dim", 0), t.get(1)));
    put("index", (t, a) -> Indexing.indexSelect(t.get(0), 0, t.get(1)));
    put("gather", (t, a) -> Indexing.gather(t.get(0), a.at("dim", 0), t.get(1)));
    put("scatter_add", (t, a) -> Indexing.scatterAdd(t.get(0), a.at("dim", 0), t.get(1), t.get(2)));
    put(
        "embedding",
        (t, a) ->
            a.has("padding_idx")
                ? Indexing.embedding(t.get(0), t.get(1), a.at("padding_idx", -1))
                : Indexing.embedding(t.get(0), t.get(1)));
    put("cumsum", (t, a) -> Reductions.cumsum(t.get(0), a.at("dim", 0)));
    put(
        "topk",
        (t, a) -> Ordering.topk(t.get(0), a.at(0), a.at("dim", -1), a.flag("largest", true)));
    put("sort", (t, a) -> Ordering.sort(t.get(0), a.at("dim", -1), a.flag("descending")));
  }

  private static void reductions() {
    put("sum", (t, a) -> Reductions.sum(t.get(0), a.dims(), a.keep()));
    put("mean", (t, a) -> Reductions.mean(t.get(0), a.dims(), a.keep()));
    put("prod", (t, a) -> Reductions.prod(t.get(0), a.dims(), a.keep()));
    put("amax", (t, a) -> Extrema.amax(t.get(0), a.dims(), a.keep()));
    put("amin", (t, a) -> Extrema.amin(t.get(0), a.dims(), a.keep()));
    put("all", (t, a) -> Reductions.all(t.get(0), a.dims(), a.keep()));
    put("any", (t, a) -> Reductions.any(t.get(0), a.dims(), a.keep()));
    put("logsumexp", (t, a) -> Reductions.logSumExp(t.get(0), a.dims(), a.keep()));
    put("var", (t, a) -> Statistics.var(t.get(0), a.dims(), a.correction(), a.keep()));
    put("std", (t, a) -> Statistics.std(t.get(0), a.dims(), a.correction(), a.keep()));
    put("vector_norm", (t, a) -> Statistics.vectorNorm(t.get(0), a.ord(), a.dims(), a.keep()));
    put("max", (t, a) -> extremum(t.get(0), a, true));
    put("min", (t, a) -> extremum(t.get(0), a, false));
    put(
        "argmax",
        (t, a) ->
            a.has("dim")
                ? Extrema.argmax(t.get(0), a.at("dim", 0), a.keep())
                : Extrema.argmax(t.get(0)));
    put(
        "argmin",
        (t, a) ->
            a.has("dim")
                ? Extrema.argmin(t.get(0), a.at("dim", 0), a.keep())
                : Extrema.argmin(t.get(0)));
  }

  private static Object extremum(Tensor x, OpArgs a, boolean max) {
    if (a.has("dim")) {
      return max
          ? Extrema.max(x, a.at("dim", 0), a.keep())
          : Extrema.min(x, a.at("dim", 0), a.keep());
    }
    return max ? Extrema.max(x) : Extrema.min(x);
  }

  private static @Nullable Tensor get(List<Tensor> t, int i) {
    return i < t.size() ? t.get(i) : null;
  }

  private static Tensor crossEntropy(List<Tensor> t, OpArgs a) {
    return Losses.crossEntropy(
        t.get(0),
        t.get(1),
        a.text("reduction", "mean"),
        a.integer("ignore_index", 0, Losses.IGNORE_INDEX),
        a.real("label_smoothing", 0));
  }

  private static void neural() {
    put("softmax", (t, a) -> Softmaxes.softmax(t.get(0), a.at("dim", 0)));
    put("log_softmax", (t, a) -> Softmaxes.logSoftmax(t.get(0), a.at("dim", 0)));
    put(
        "layer_norm",
        (t, a) ->
            Norms.layerNorm(
                t.get(0), a.sizes("normalized_shape"), get(t, 1), get(t, 2), a.real("eps", 1e-5)));
    put(
        "rms_norm",
        (t, a) ->
            Norms.rmsNorm(t.get(0), a.sizes("normalized_shape"), get(t, 1), a.real("eps", 1e-6)));
    put(
        "nll_loss",
        (t, a) ->
            Losses.nllLoss(
                t.get(0),
                t.get(1),
                a.text("reduction", "mean"),
                a.integer("ignore_index", 0, Losses.IGNORE_INDEX)));
    put("cross_entropy", OpTable::crossEntropy);
    put("cross_entropy_loss_parallel", (t, a) -> LossParallel.with(() -> crossEntropy(t, a)));
    put("mse_loss", (t, a) -> Losses.mseLoss(t.get(0), t.get(1), a.text("reduction", "mean")));
    put(
        "sdpa_math",
        (t, a) ->
            Attention.scaledDotProduct(
                t.get(0),
                t.get(1),
                t.get(2),
                a.flag("is_causal")
                    ? Attention.causalMask(t.get(0).size(-2), t.get(1).size(-2))
                    : null));
  }
}
