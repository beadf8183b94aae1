package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.tp.LossParallel;
import dev.weft.dtensor.tp.ParallelStyle;
import dev.weft.dtensor.tp.Parallelize;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.InPlace;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Splits;
import dev.weft.tensor.op.Views;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** tp.json: models made tensor-parallel by a plan, one step forward and backward. */
final class TpRunner implements CaseRunner {
  private static final JsonTensors.Tolerance TOLERANCE = new JsonTensors.Tolerance(1e-5, 1e-4);

  private record Seen(
      int dp,
      Outputs.Seen output,
      Tensor loss,
      @Nullable Tensor inputGradient,
      Map<String, DTensor> placed,
      Map<String, Outputs.Seen> gradients,
      CommLog parallelize,
      CommLog forward,
      CommLog backward) {}

  @Override
  public Outcome run(JsonNode c) {
    JsonNode inputs = c.get("inputs");
    JsonNode expected = c.get("expected");
    var results = Ranks.run(Specs.world(inputs.get("mesh")), rank -> seen(inputs));
    if (expected.has("error")) {
      Ranks.requireErrors(expected.get("error"), results);
      return Outcome.PASSED;
    }
    @Nullable String traffic = null;
    for (int r = 0; r < results.size(); r++) {
      Traffic moved = new Traffic();
      Seen got = results.get(r).get();
      compare(r, expected, got, moved);
      if (r == 0) {
        traffic = traffic(expected, got, moved);
      }
    }
    return traffic == null ? Outcome.PASSED : Outcome.deviation(traffic);
  }

  private static @Nullable String traffic(JsonNode expected, Seen got, Traffic moved) {
    int most = CommBytes.of(expected.get("comm_parallelize"), DType.FLOAT32).count();
    Json.require(
        got.parallelize.count() <= most,
        "parallelize: got "
            + got.parallelize
            + ", want no more than "
            + expected.get("comm_parallelize"));
    CommBytes forward = CommBytes.of(expected.get("comm_forward"), DType.FLOAT32);
    CommBytes backward = CommBytes.of(expected.get("comm_backward"), DType.FLOAT32);
    @Nullable String first = new Traffic().grade("forward ", forward, got.forward, null);
    @Nullable String second = moved.grade("backward ", backward, got.backward, null);
    return first == null ? second : first;
  }

  private static void compare(int r, JsonNode expected, Seen got, Traffic moved) {
    String at = "rank " + r + " ";
    JsonNode want = expected.get("per_rank").get(r);
    JsonNode output = want.get("output");
    JsonTensors.requireClose(
        at + "output",
        output.has("full") ? output.get("full") : output.get("local"),
        got.output.whole(),
        TOLERANCE);
    JsonTensors.requireClose(at + "loss", want.get("loss"), got.loss, TOLERANCE);
    if (want.has("x_grad")) {
      Tensor g = got.inputGradient;
      Json.require(g != null, at + "the input has no gradient");
      if (g != null) {
        JsonTensors.requireClose(at + "input gradient", want.get("x_grad"), g, TOLERANCE);
      }
    }
    for (var e : expected.get("params").properties()) {
      compareParameter(at + e.getKey() + " ", r, e.getKey(), e.getValue(), got, moved);
    }
  }

  private static void compareParameter(
      String at, int r, String name, JsonNode want, Seen got, Traffic moved) {
    Outputs.Seen g = got.gradients.get(name);
    if (g == null) {
      throw new Mismatch(at + "has no gradient");
    }
    if (want.has("grad_local_per_rank")) {
      JsonTensors.requireClose(
          at + "gradient", want.get("grad_local_per_rank").get(r), g.whole(), TOLERANCE);
      return;
    }
    DTensor p = got.placed.get(name);
    if (p == null) {
      throw new Mismatch(at + "is not distributed");
    }
    Json.requireEqual(at + "placements", Json.strings(want.get("placements")), p.placements());
    JsonNode full =
        want.has("reference_grad_per_dp")
            ? want.get("reference_grad_per_dp")
            : want.get("grad_per_dp");
    JsonTensors.requireClose(at + "gradient", full.get(got.dp), g.whole(), TOLERANCE);
    JsonNode wanted =
        com.fasterxml.jackson.databind.node.JsonNodeFactory.instance
            .objectNode()
            .set("placements", want.get("grad_placements"));
    Outputs.requirePlaced(at + "gradient ", r, wanted, (DTensor) g.result(), g, moved);
  }

  private static Seen seen(JsonNode i) {
    DeviceMesh mesh = Specs.mesh(i.get("mesh"));
    DeviceMesh tp = mesh.ndim() > 1 ? mesh.get(i.get("tp_dim").asText()) : mesh;
    int dp = Json.has(i, "dp_dim") ? mesh.getLocalRank(i.get("dp_dim").asText()) : 0;
    Module model = model(i);
    CommLog parallelize = new CommLog();
    try (Dispatcher.Installed installed = Dispatcher.install(parallelize)) {
      Map<String, ParallelStyle> plan = TpPlan.read(i.get("plan"));
      Module unused = Parallelize.parallelizeModule(model, tp, plan);
    }
    Tensor x = JsonTensors.read(i.get("x").get(dp));
    Tensor target = JsonTensors.read(i.get("target").get(dp));
    if (Json.has(i, "x_shard_dim")) {
      x = part(x, i.get("x_shard_dim").asInt(), tp);
    }
    if (x.dtype().isFloatingPoint()) {
      x = x.detach().requiresGrad(true);
    }
    CommLog forward = new CommLog();
    Tensor y;
    Tensor loss;
    try (Dispatcher.Installed installed = Dispatcher.install(forward)) {
      y = model.call(x);
      loss = loss(i.get("loss").asText(), y, target, tp);
    }
    CommLog backward = new CommLog();
    try (Dispatcher.Installed installed = Dispatcher.install(backward)) {
      loss.backward();
    }
    Map<String, DTensor> placed = new LinkedHashMap<>();
    Map<String, Outputs.Seen> gradients = new LinkedHashMap<>();
    model
        .namedParameters()
        .forEach(
            (name, p) -> {
              if (p instanceof DTensor d) {
                placed.put(name, d);
              }
              Tensor g = p.grad();
              if (g != null) {
                gradients.put(name, Outputs.Seen.of(g));
              }
            });
    return new Seen(
        dp,
        Outputs.Seen.of(y),
        loss.detach().plain(),
        x.requiresGrad() ? x.grad() : null,
        placed,
        gradients,
        parallelize,
        forward,
        backward);
  }

  private static Module model(JsonNode i) {
    Map<String, Long> dims = new HashMap<>();
    i.get("dims").properties().forEach(e -> dims.put(e.getKey(), e.getValue().asLong()));
    Module model = TpModels.of(i.get("model").asText(), dims);
    Autograd.noGrad(
        () ->
            i.get("state_dict")
                .properties()
                .forEach(
                    e -> {
                      Tensor unused =
                          InPlace.copy(model.parameter(e.getKey()), JsonTensors.read(e.getValue()));
                    }));
    return model;
  }

  /** This rank's chunk, contiguous. */
  private static Tensor part(Tensor t, int dim, DeviceMesh tp) {
    Tensor chunk = Splits.chunk(t, tp.size(), dim).get(tp.getLocalRank());
    return Autograd.noGrad(() -> ((StridedTensor) chunk).contiguous());
  }

  private static Tensor loss(String kind, Tensor y, Tensor target, DeviceMesh tp) {
    if (kind.equals("mse")) {
      if (y instanceof DTensor) {
        return y.mul(y).mean();
      }
      Tensor t = target;
      if (!java.util.Arrays.equals(y.shape(), t.shape())) {
        t = part(t, 1, tp);
      }
      Tensor d = y.sub(t);
      return d.mul(d).sum().div((Number) target.numel());
    }
    Tensor logits = Views.flatten(y, 0, 1);
    Tensor flat = Views.flatten(target, 0, -1);
    return kind.endsWith("_loss_parallel")
        ? LossParallel.with(() -> Losses.crossEntropy(logits, flat))
        : Losses.crossEntropy(logits, flat);
  }
}
