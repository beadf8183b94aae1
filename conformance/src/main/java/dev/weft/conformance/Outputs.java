package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.DTensorInternals;
import dev.weft.dtensor.DTensorSpec;
import dev.weft.dtensor.Placement;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Comparison of distributed results with recorded ones. */
final class Outputs {
  private Outputs() {}

  /**
   * One rank's view of a result.
   *
   * @param result a tensor or a Boolean
   * @param local this rank's part of a distributed tensor
   * @param full its whole value
   */
  record Seen(Object result, @Nullable Tensor local, @Nullable Tensor full) {
    /** Gathers; all ranks call it alike. */
    static Seen of(Object result) {
      if (result instanceof DTensor d) {
        return Autograd.noGrad(() -> new Seen(d, DTensorInternals.local(d), d.detach().plain()));
      }
      return new Seen(result, null, result instanceof Tensor t ? t.plain() : null);
    }

    Tensor whole() {
      if (full == null) {
        throw new CaseRunner.Mismatch("got " + result + ", want a tensor");
      }
      return full;
    }
  }

  /** Compares one result on one rank; values first. */
  static void require(String at, int rank, JsonNode want, Seen got, Traffic traffic) {
    if (want.has("value")) {
      Json.requireEqual(at + "value", want.get("value").asText(), String.valueOf(got.result));
      return;
    }
    JsonNode value =
        want.has("reference")
            ? want.get("reference")
            : want.get("plain") != null ? want.get("plain") : want.get("full");
    if (value != null) {
      JsonTensors.requireClose(at + "full", value, got.whole());
    }
    if (got.result instanceof DTensor d && want.has("placements")) {
      requirePlaced(at, rank, want, d, got, traffic);
    }
  }

  /** Equal placements and local shapes, or others that need no more bytes to become whole. */
  static void requirePlaced(
      String at, int rank, JsonNode want, DTensor d, Seen got, Traffic traffic) {
    if (want.has("shape")) {
      Json.requireEqual(
          at + "shape", Arrays.toString(Json.longs(want.get("shape"))), Arrays.toString(d.shape()));
    }
    if (want.has("dtype")) {
      Json.requireEqual(at + "dtype", want.get("dtype").asText(), d.dtype());
    }
    List<Placement> recorded =
        DTensorSpec.normalize(d.mesh(), Specs.placements(want.get("placements")), d.ndim());
    if (recorded.equals(d.placements())) {
      Tensor local = got.local;
      if (local != null && want.has("local_shapes")) {
        Json.requireEqual(
            at + "local shape",
            Arrays.toString(Json.longs(want.get("local_shapes").get(rank))),
            Arrays.toString(local.shape()));
      }
      return;
    }
    long theirs = DTensorInternals.bytesToReplicate(d.spec().with(recorded));
    long ours = DTensorInternals.bytesToReplicate(d.spec());
    traffic.differs(at + "placements: got " + d.placements() + ", want " + recorded, ours, theirs);
  }
}
