package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.DTensorFactories;
import dev.weft.dtensor.DTensorSpec;
import dev.weft.dtensor.Placement;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Dispatcher;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** sharding.json: layouts, distribution, construction from parts, factories. */
final class ShardingRunner implements CaseRunner {
  private static final int WORLD = 8;

  /** What one rank saw. */
  private record Seen(
      DTensor tensor,
      StridedTensor local,
      long @Nullable [] localShape,
      long @Nullable [] offset,
      CommLog log) {}

  @Override
  public Outcome run(JsonNode c) {
    JsonNode inputs = c.get("inputs");
    JsonNode expected = c.get("expected");
    String kind = c.get("kind").asText();
    List<Ranks.Result<Seen>> results = Ranks.run(WORLD, rank -> seen(kind, inputs, rank));
    if (expected.has("error")) {
      Ranks.requireErrors(expected.get("error"), results);
      return Outcome.PASSED;
    }
    if (tooMany(inputs)) {
      for (Ranks.Result<Seen> got : results) {
        Json.require(
            got.error() instanceof IllegalArgumentException,
            "more placements than mesh dimensions: got " + got);
      }
      return Outcome.deviation("more placements than mesh dimensions are refused");
    }
    for (int r = 0; r < WORLD; r++) {
      JsonNode want = expected.get("per_rank").get(r);
      Ranks.Result<Seen> got = results.get(r);
      if (want.has("error")) {
        Throwable error = got.error();
        if (error == null) {
          throw new Mismatch("rank " + r + ": want " + want.get("error"));
        }
        Errors.requireFits("rank " + r, want.get("error"), error);
      } else {
        compare("rank " + r + " ", kind, want, got.get());
      }
    }
    return Outcome.PASSED;
  }

  private static boolean tooMany(JsonNode inputs) {
    int dims = inputs.get("mesh").get("shape").size();
    return (Json.has(inputs, "placements") && inputs.get("placements").size() > dims)
        || (inputs.has("to") && inputs.get("to").size() > dims);
  }

  private static Seen seen(String kind, JsonNode i, int rank) {
    DeviceMesh mesh = Specs.mesh(i.get("mesh"));
    CommLog log = new CommLog();
    return switch (kind) {
      case "layout" -> layout(i, mesh, log);
      case "distribute" -> of(log, () -> distribute(i, mesh, rank));
      case "from_local" -> of(log, () -> fromLocal(i, mesh, rank));
      case "factory" -> of(log, () -> factory(i, mesh));
      case "full_tensor" -> fullTensor(i, mesh, log);
      case "redistribute" ->
          of(
              log,
              () ->
                  Specs.tensor(i.get("tensor"), mesh).redistribute(Specs.placements(i.get("to"))));
      default -> throw new Mismatch("unknown kind " + kind);
    };
  }

  private static Seen layout(JsonNode i, DeviceMesh mesh, CommLog log) {
    long[] shape = Json.longs(i.get("shape"));
    List<Placement> placements = Specs.placements(i.get("placements"));
    DTensorSpec spec =
        DTensorSpec.of(
            mesh, DTensorSpec.normalize(mesh, placements, shape.length), shape, DType.FLOAT32);
    DTensor d = DTensor.distributeTensor(arange(shape), mesh, placements, null);
    return new Seen(d, (StridedTensor) d.toLocal(), spec.localShape(), spec.globalOffset(), log);
  }

  private static Seen fullTensor(JsonNode i, DeviceMesh mesh, CommLog log) {
    DTensor d = Specs.tensor(i.get("tensor"), mesh);
    StridedTensor full;
    try (Dispatcher.Installed installed = Dispatcher.install(log)) {
      full = (StridedTensor) d.fullTensor();
    }
    return new Seen(d, full, null, null, log);
  }

  private interface Maker {
    DTensor make();
  }

  private static Seen of(CommLog log, Maker maker) {
    DTensor d;
    try (Dispatcher.Installed installed = Dispatcher.install(log)) {
      d = maker.make();
    }
    return new Seen(d, (StridedTensor) d.toLocal(), null, null, log);
  }

  private static Tensor arange(long[] shape) {
    float[] values = new float[(int) Shapes.numel(shape)];
    for (int k = 0; k < values.length; k++) {
      values[k] = k;
    }
    return Tensor.of(values, shape.length == 0 ? new long[0] : shape);
  }

  private static Tensor transposedIfAsked(JsonNode i, Tensor t) {
    if (!i.has("transposed") || !i.get("transposed").asBoolean()) {
      return t;
    }
    StridedTensor s = (StridedTensor) t;
    return s.withLayout(
        new long[] {s.shape()[1], s.shape()[0]},
        new long[] {s.strides()[1], s.strides()[0]},
        s.offset());
  }

  private static List<Placement> placementsOrReplicate(JsonNode i, DeviceMesh mesh) {
    return Json.has(i, "placements")
        ? Specs.placements(i.get("placements"))
        : java.util.Collections.nCopies(mesh.ndim(), dev.weft.dtensor.Placements.replicate());
  }

  private static DTensor distribute(JsonNode i, DeviceMesh mesh, int rank) {
    Tensor t = transposedIfAsked(i, JsonTensors.read(i.get("per_rank_global").get(rank)));
    Integer source =
        !i.has("src_data_rank")
            ? Integer.valueOf(0)
            : i.get("src_data_rank").isNull() ? null : i.get("src_data_rank").asInt();
    return DTensor.distributeTensor(t, mesh, placementsOrReplicate(i, mesh), source);
  }

  private static DTensor fromLocal(JsonNode i, DeviceMesh mesh, int rank) {
    Tensor t = transposedIfAsked(i, JsonTensors.read(i.get("local").get(rank)));
    DTensor.FromLocal options =
        new DTensor.FromLocal(
            i.has("shape") ? Json.longs(i.get("shape")) : null,
            i.has("stride") ? Json.longs(i.get("stride")) : null,
            null,
            i.has("run_check") && i.get("run_check").asBoolean());
    return DTensor.fromLocal(t, mesh, placementsOrReplicate(i, mesh), options);
  }

  private static DTensor factory(JsonNode i, DeviceMesh mesh) {
    List<Placement> placements = Specs.placements(i.get("placements"));
    DType dtype = DType.of(i.get("dtype").asText());
    long[] shape = Json.longs(i.get("shape"));
    return switch (i.get("fn").asText()) {
      case "zeros" -> DTensorFactories.zeros(mesh, placements, dtype, shape);
      case "ones" -> DTensorFactories.ones(mesh, placements, dtype, shape);
      case "empty" -> DTensorFactories.empty(mesh, placements, dtype, shape);
      case "full" ->
          DTensorFactories.full(i.get("fill_value").asDouble(), mesh, placements, dtype, shape);
      default -> throw new Mismatch("unknown factory " + i.get("fn"));
    };
  }

  private static void compare(String at, String kind, JsonNode want, Seen got) {
    if (kind.equals("layout")) {
      Json.requireEqual(
          at + "local shape",
          Arrays.toString(Json.longs(want.get("local_shape"))),
          Arrays.toString(got.localShape()));
      Json.requireEqual(
          at + "offset",
          Arrays.toString(Json.longs(want.get("global_offset"))),
          Arrays.toString(got.offset()));
      JsonTensors.requireClose(at + "local", want.get("local"), got.local());
      return;
    }
    if (kind.equals("full_tensor")) {
      JsonTensors.requireClose(at + "full", want.get("full"), got.local());
      requireNoMore(at, want.get("comm"), got.log());
      return;
    }
    DTensor d = got.tensor();
    Json.requireEqual(
        at + "global shape",
        Arrays.toString(Json.longs(want.get("global_shape"))),
        Arrays.toString(d.shape()));
    Json.requireEqual(
        at + "global stride",
        Arrays.toString(Json.longs(want.get("global_stride"))),
        Arrays.toString(d.spec().strides()));
    Json.requireEqual(at + "placements", Json.strings(want.get("placements")), d.placements());
    if (want.get("local").has("data")) {
      JsonTensors.requireClose(at + "local", want.get("local"), got.local());
    } else {
      Json.requireEqual(
          at + "local shape",
          Arrays.toString(Json.longs(want.get("local").get("shape"))),
          Arrays.toString(got.local().shape()));
    }
    if (want.has("comm")) {
      requireNoMore(at, want.get("comm"), got.log());
    }
  }

  /** A flat map of counts. */
  static void requireNoMore(String at, JsonNode counts, CommLog log) {
    int want = 0;
    for (Map.Entry<String, JsonNode> e : counts.properties()) {
      want += e.getValue().asInt();
    }
    Json.require(
        log.count() <= want, at + "collectives: got " + log + ", want no more than " + counts);
  }
}
