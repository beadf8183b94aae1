package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.dtensor.DTensor;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Dispatcher;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** ops.json: single operators, their placements, values and collectives. */
final class OpsRunner implements CaseRunner {
  private record Seen(List<Outputs.Seen> outputs, CommLog log) {}

  @Override
  public Outcome run(JsonNode c) {
    JsonNode inputs = c.get("inputs");
    JsonNode expected = c.get("expected");
    if (c.has("backend_specific") && c.get("backend_specific").asBoolean()) {
      return Outcome.notApplicable("depends on the backend of the reference");
    }
    String op = inputs.get("op").asText();
    int world = Specs.world(inputs.get("mesh"));
    List<Ranks.Result<Seen>> results = Ranks.run(world, rank -> seen(inputs));
    if (expected.has("error")) {
      return gradeError(inputs, op, expected.get("error"), results);
    }
    @Nullable String deviation = null;
    @Nullable String traffic = null;
    int meshDims = inputs.get("mesh").get("shape").size();
    for (int r = 0; r < world; r++) {
      Seen got = results.get(r).get();
      Traffic moved = new Traffic();
      JsonNode wanted = expected.get("outputs");
      Json.requireEqual("number of outputs", wanted.size(), got.outputs.size());
      for (int k = 0; k < wanted.size(); k++) {
        Outputs.require(
            "rank " + r + " output " + k + " ", r, wanted.get(k), got.outputs.get(k), moved);
        if (wanted.get(k).has("reference")) {
          deviation = "the reference's own result is wrong; Weft's is the dense one";
        } else if (wanted.get(k).has("full_error")) {
          deviation = "the reference cannot reduce its result; Weft can";
        }
      }
      if (r == 0) {
        traffic =
            moved.grade("", expected.get("comm"), got.log, Deviations.extra("ops", op, meshDims));
      }
    }
    deviation = deviation == null ? traffic : deviation;
    if (deviation == null) {
      return Outcome.PASSED;
    }
    requireDense(inputs, op, results);
    return Outcome.deviation(deviation);
  }

  private static Outcome gradeError(
      JsonNode inputs, String op, JsonNode error, List<Ranks.Result<Seen>> results) {
    long raised = results.stream().filter(r -> r.error() != null).count();
    if (raised > 0) {
      Ranks.requireErrors(error, results);
      return Outcome.PASSED;
    }
    String message = error.get("message").asText();
    String reason = Deviations.insteadOfError("ops", op, message);
    Json.require(reason != null, "got a result, want " + error);
    requireDense(inputs, op, results);
    return Outcome.deviation(reason == null ? "" : reason);
  }

  private static Seen seen(JsonNode inputs) {
    DeviceMesh mesh = Specs.mesh(inputs.get("mesh"));
    List<Tensor> tensors = tensors(inputs, mesh);
    CommLog log = new CommLog();
    List<Object> out;
    try (Dispatcher.Installed installed = Dispatcher.install(log)) {
      out = OpTable.call(inputs.get("op").asText(), inputs.get("attrs"), tensors);
    }
    return new Seen(out.stream().map(Outputs.Seen::of).toList(), log);
  }

  private static List<Tensor> tensors(JsonNode inputs, DeviceMesh mesh) {
    List<Tensor> tensors = new ArrayList<>();
    for (JsonNode d : inputs.get("tensors")) {
      tensors.add(d.has("plain") ? JsonTensors.read(d.get("plain")) : Specs.tensor(d, mesh));
    }
    return tensors;
  }

  /** Compares with the operator on whole tensors. */
  private static void requireDense(JsonNode inputs, String op, List<Ranks.Result<Seen>> results) {
    int world = Specs.world(inputs.get("mesh"));
    List<Object> dense =
        Ranks.run(
                world,
                rank -> {
                  DeviceMesh mesh = Specs.mesh(inputs.get("mesh"));
                  List<Tensor> whole = new ArrayList<>();
                  for (Tensor t : tensors(inputs, mesh)) {
                    whole.add(t instanceof DTensor d ? d.fullTensor() : t);
                  }
                  String plain = op.replace("_loss_parallel", "");
                  return OpTable.call(plain, inputs.get("attrs"), whole);
                })
            .get(0)
            .get();
    for (int r = 0; r < world; r++) {
      List<Outputs.Seen> got = results.get(r).get().outputs;
      Json.requireEqual("number of outputs", dense.size(), got.size());
      for (int k = 0; k < dense.size(); k++) {
        String at = "rank " + r + " output " + k + " against the dense result";
        if (dense.get(k) instanceof Tensor t) {
          JsonTensors.requireClose(at, t, got.get(k).whole());
        } else {
          Json.requireEqual(at, dense.get(k), got.get(k).result());
        }
      }
    }
  }
}
