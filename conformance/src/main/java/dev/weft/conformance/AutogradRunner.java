package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.Distributed;
import dev.weft.dtensor.DTensor;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Dispatcher;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** autograd.json: small graphs forward and backward. */
final class AutogradRunner implements CaseRunner {
  private record Seen(Outputs.Seen loss, List<Outputs.@Nullable Seen> grads, CommLog log) {}

  @Override
  public Outcome run(JsonNode c) {
    JsonNode inputs = c.get("inputs");
    JsonNode expected = c.get("expected");
    String name = name(inputs);
    int world = Specs.world(inputs.get("mesh"));
    List<Ranks.Result<Seen>> results = Ranks.run(world, rank -> seen(inputs));
    if (expected.has("error")) {
      if (results.stream().anyMatch(r -> r.error() != null)) {
        Ranks.requireErrors(expected.get("error"), results);
        return Outcome.PASSED;
      }
      String reason =
          Deviations.insteadOfError(
              "autograd", name, expected.get("error").get("message").asText());
      if (reason == null) {
        return Outcome.failed("got a result, want " + expected.get("error"));
      }
      requireDense(inputs, results);
      return Outcome.deviation(reason);
    }
    boolean better = false;
    @Nullable String traffic = null;
    for (int r = 0; r < world; r++) {
      Traffic moved = new Traffic();
      better |= compare(r, expected, results.get(r).get(), moved);
      if (r == 0) {
        CommBytes forward = CommBytes.of(expected.get("comm_forward"), DType.FLOAT32);
        CommBytes backward = CommBytes.of(expected.get("comm_backward"), DType.FLOAT32);
        int meshDims = inputs.get("mesh").get("shape").size();
        traffic =
            moved.grade(
                "",
                forward.plus(backward),
                results.get(r).get().log,
                Deviations.extra("autograd", name, meshDims));
      }
    }
    if (better) {
      return Outcome.deviation("the reference's own result is wrong; Weft's is the dense one");
    }
    return traffic == null ? Outcome.PASSED : Outcome.deviation(traffic);
  }

  private static String name(JsonNode inputs) {
    JsonNode a = inputs.get("attrs");
    String graph = inputs.get("graph").asText();
    return a.has("op")
        ? a.get("op").asText()
        : a.has("loss") ? graph + " " + a.get("loss").asText() : graph;
  }

  /** True where the record holds a better value than the reference's own. */
  private static boolean compare(int r, JsonNode expected, Seen got, Traffic moved) {
    String at = "rank " + r + " ";
    boolean better = expected.has("reference_loss");
    JsonNode loss =
        better
            ? expected.get("reference_loss")
            : expected.has("loss") ? expected.get("loss") : expected.get("loss_per_rank").get(r);
    JsonTensors.requireClose(at + "loss", loss, got.loss.whole());
    for (int k = 0; k < expected.get("grads").size(); k++) {
      JsonNode want = expected.get("grads").get(k);
      Outputs.Seen g = got.grads.get(k);
      String here = at + "gradient " + k + " ";
      if (want.isNull()) {
        continue;
      }
      if (want.has("none") || g == null) {
        Json.require(g == null && want.has("none"), here + "got " + g + ", want " + want);
        continue;
      }
      better |= want.has("reference");
      if (want.has("per_rank")) {
        JsonTensors.requireClose(here, want.get("per_rank").get(r), g.whole());
      } else if (want.has("full_differs_per_rank")) {
        Tensor local = g.local();
        if (local == null) {
          throw new Mismatch(here + "is not distributed");
        }
        JsonTensors.requireClose(here + "part", want.get("local").get(r), local);
      } else {
        Outputs.require(here, r, want, g, moved);
      }
    }
    return better;
  }

  private static Seen seen(JsonNode inputs) {
    DeviceMesh mesh = Specs.mesh(inputs.get("mesh"));
    List<Tensor> tensors = leaves(inputs, mesh);
    CommLog log = new CommLog();
    Tensor loss;
    try (Dispatcher.Installed installed = Dispatcher.install(log)) {
      loss = Graphs.run(inputs.get("graph").asText(), inputs.get("attrs"), tensors, mesh);
      loss.backward();
    }
    List<Outputs.@Nullable Seen> grads = new ArrayList<>();
    for (Tensor t : tensors) {
      Tensor g = t.grad();
      grads.add(g == null ? null : Outputs.Seen.of(g));
    }
    return new Seen(Outputs.Seen.of(loss), grads, log);
  }

  private static List<Tensor> leaves(JsonNode inputs, DeviceMesh mesh) {
    List<Tensor> tensors = new ArrayList<>();
    for (JsonNode d : inputs.get("tensors")) {
      Tensor t =
          d.has("plain_local")
              ? JsonTensors.read(d.get("plain_local").get(Distributed.rank()))
              : d.has("plain") ? JsonTensors.read(d.get("plain")) : Specs.tensor(d, mesh);
      boolean leaf = d.has("requires_grad") && d.get("requires_grad").asBoolean();
      tensors.add(leaf ? t.detach().requiresGrad(true) : t);
    }
    return tensors;
  }

  /** Compares loss and gradients with those of whole tensors. */
  private static void requireDense(JsonNode inputs, List<Ranks.Result<Seen>> results) {
    List<Ranks.Result<List<Tensor>>> dense =
        Ranks.run(
            results.size(),
            rank -> {
              DeviceMesh mesh = Specs.mesh(inputs.get("mesh"));
              List<Tensor> whole = new ArrayList<>();
              for (Tensor t : leaves(inputs, mesh)) {
                Tensor full = t instanceof DTensor d ? d.detach().plain() : t.detach();
                whole.add(t.requiresGrad() ? full.requiresGrad(true) : full);
              }
              JsonNode attrs = Json.replaced(inputs.get("attrs"), "_loss_parallel", "");
              Tensor loss = Graphs.run(inputs.get("graph").asText(), attrs, whole, null);
              loss.backward();
              List<Tensor> out = new ArrayList<>(List.of(loss));
              for (Tensor t : whole) {
                Tensor g = t.grad();
                if (g != null) {
                  out.add(g);
                }
              }
              return out;
            });
    for (int r = 0; r < results.size(); r++) {
      List<Tensor> want = dense.get(r).get();
      Seen got = results.get(r).get();
      List<Outputs.Seen> all = new ArrayList<>(List.of(got.loss));
      for (Outputs.@Nullable Seen g : got.grads) {
        if (g != null) {
          all.add(g);
        }
      }
      Json.requireEqual("number of gradients", want.size(), all.size());
      for (int k = 0; k < want.size(); k++) {
        JsonTensors.requireClose(
            "rank " + r + " value " + k + " against the dense result",
            want.get(k),
            all.get(k).whole());
      }
    }
  }
}
