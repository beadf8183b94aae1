package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.Distributed;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Placement;
import dev.weft.dtensor.Placements;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Meshes, placements and distributed tensors as the golden files describe them. */
final class Specs {
  private Specs() {}

  /** The world that a mesh spec of "shape" and optional "ranks" needs. */
  static int world(JsonNode mesh) {
    int n = 1;
    for (int s : Json.ints(mesh.get("shape"))) {
      n *= s;
    }
    if (Json.has(mesh, "ranks")) {
      for (int r : Json.ints(mesh.get("ranks"))) {
        n = Math.max(n, r + 1);
      }
    }
    return n;
  }

  /** The mesh, on the calling rank. */
  static DeviceMesh mesh(JsonNode spec) {
    int[] shape = Json.ints(spec.get("shape"));
    int[] ranks;
    if (Json.has(spec, "ranks")) {
      ranks = Json.ints(spec.get("ranks"));
    } else {
      ranks = new int[Arrays.stream(shape).reduce(1, (a, b) -> a * b)];
      Arrays.setAll(ranks, i -> i);
    }
    String[] names =
        Json.has(spec, "dim_names")
            ? Json.strings(spec.get("dim_names")).toArray(new String[0])
            : new String[0];
    DeviceMesh mesh = DeviceMesh.of("cpu", ranks, shape, names);
    if (Json.has(spec, "flatten")) {
      for (JsonNode group : spec.get("flatten")) {
        DeviceMesh unused = mesh.get(Json.strings(group).toArray(new String[0])).flatten();
      }
    }
    return mesh;
  }

  /** Placements as recorded; a masked partial is a sum of rows that others have zeroed. */
  static List<Placement> placements(JsonNode array) {
    List<Placement> out = new ArrayList<>();
    array.forEach(p -> out.add(Placements.parse(p.asText().equals("MP") ? "P(sum)" : p.asText())));
    return out;
  }

  /** A distributed tensor from its whole value or from the parts of all ranks. */
  static DTensor tensor(JsonNode desc, DeviceMesh mesh) {
    List<Placement> placements = placements(desc.get("placements"));
    DTensor t;
    if (desc.has("local")) {
      long[] shape = Json.longs(desc.get("shape"));
      Tensor local = JsonTensors.read(desc.get("local").get(Distributed.rank()));
      t =
          DTensor.fromLocal(
              local,
              mesh,
              placements,
              DTensor.FromLocal.DEFAULT.withShape(shape, Shapes.contiguousStrides(shape)));
    } else {
      t = DTensor.distributeTensor(JsonTensors.read(desc.get("global")), mesh, placements, null);
    }
    if (desc.has("requires_grad") && desc.get("requires_grad").asBoolean()) {
      t = (DTensor) t.detach().requiresGrad(true);
    }
    return t;
  }
}
