package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.DTensorInternals;
import dev.weft.dtensor.Placement;
import dev.weft.dtensor.Plan;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Dispatcher;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** redistribute.json: parts before and after, and the collectives in between. */
final class RedistributeRunner implements CaseRunner {
  private record Seen(
      Tensor local, @Nullable Tensor full, CommLog log, Plan plan, CommLog fullLog) {}

  @Override
  public Outcome run(JsonNode c) {
    JsonNode inputs = c.get("inputs");
    JsonNode expected = c.get("expected");
    int world = Specs.world(inputs.get("mesh"));
    boolean isPublic = inputs.get("api").asText().equals("redistribute");
    List<Ranks.Result<Seen>> results = Ranks.run(world, rank -> seen(inputs, isPublic));
    if (expected.has("error")) {
      Ranks.requireErrors(expected.get("error"), results);
      return Outcome.PASSED;
    }
    boolean better = expected.has("reference");
    for (int r = 0; r < world; r++) {
      Seen got = results.get(r).get();
      String at = "rank " + r + " ";
      if (!better) {
        JsonTensors.requireClose(at + "local", expected.get("local").get(r), got.local());
      }
      if (got.full() != null) {
        JsonTensors.requireClose(
            at + "full", expected.get(better ? "reference" : "full"), got.full());
      }
    }
    Seen first = results.get(0).get();
    CommBytes recorded = CommBytes.of(expected.get("comm"), dtype(inputs));
    Json.require(
        first.log().count() <= recorded.count(),
        "collectives: got " + first.log() + ", want no more than " + recorded);
    Json.require(
        first.plan().bytes() <= recorded.bytes(),
        "bytes: got "
            + first.plan().explain().replace('\n', ';')
            + ", want no more than "
            + recorded);
    if (expected.has("full_comm")) {
      ShardingRunner.requireNoMore("full ", expected.get("full_comm"), first.fullLog());
    }
    return better ? Outcome.deviation("the reference's own result is right") : Outcome.PASSED;
  }

  private static DType dtype(JsonNode inputs) {
    JsonNode t = inputs.get("tensor");
    JsonNode sample = t.has("global") ? t.get("global") : t.get("local").get(0);
    return DType.of(sample.get("dtype").asText());
  }

  private static Seen seen(JsonNode inputs, boolean isPublic) {
    DeviceMesh mesh = Specs.mesh(inputs.get("mesh"));
    DTensor d = Specs.tensor(inputs.get("tensor"), mesh);
    List<Placement> to = Specs.placements(inputs.get("dst"));
    CommLog log = new CommLog();
    DTensor out;
    Tensor local;
    try (Dispatcher.Installed installed = Dispatcher.install(log)) {
      out = isPublic ? d.redistribute(to) : DTensorInternals.redistribute(d, to);
      local = out.toLocal();
    }
    CommLog fullLog = new CommLog();
    Tensor full = null;
    if (isPublic) {
      try (Dispatcher.Installed installed = Dispatcher.install(fullLog)) {
        full = out.fullTensor();
      }
    }
    return new Seen(local, full, log, DTensorInternals.plan(d, to), fullLog);
  }
}
