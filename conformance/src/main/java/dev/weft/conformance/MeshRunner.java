package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.FakeWorld;
import dev.weft.c10d.ProcessGroup;
import dev.weft.mesh.DeviceMesh;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** mesh.json: coordinates, groups, parts, flattening. Each rank runs alone, moving no data. */
final class MeshRunner implements CaseRunner {
  @Override
  public Outcome run(JsonNode c) {
    JsonNode inputs = c.get("inputs");
    JsonNode expected = c.get("expected");
    int world = inputs.get("world_size").asInt();
    boolean outOfOrder = isOutOfOrderSlice(inputs);
    boolean duplicates = hasDuplicateRanks(inputs.get("mesh"));
    for (int rank = 0; rank < world; rank++) {
      JsonNode want = expected.has("per_rank") ? expected.get("per_rank").get(rank) : expected;
      int r = rank;
      FakeWorld.run(rank, world, unused -> check(r, inputs, want, outOfOrder, duplicates));
    }
    if (duplicates) {
      return Outcome.deviation("duplicate ranks are refused on every rank");
    }
    return outOfOrder
        ? Outcome.deviation("slices out of order are transposed sub-meshes")
        : Outcome.PASSED;
  }

  private static void check(
      int rank, JsonNode inputs, JsonNode want, boolean outOfOrder, boolean duplicates) {
    Object got;
    try {
      got = describe(rank, inputs);
    } catch (RuntimeException error) {
      if (error instanceof Mismatch) {
        throw error;
      }
      if (duplicates) {
        Json.require(error instanceof IllegalArgumentException, "rank " + rank + ": got " + error);
        return;
      }
      if (namesTwice(inputs) && error instanceof IllegalArgumentException) {
        return; // refused whatever the size of the dimension
      }
      Json.require(want.has("error"), "rank " + rank + ": unexpected " + error);
      Errors.requireFits("rank " + rank, want.get("error"), error);
      return;
    }
    Json.require(!duplicates, "rank " + rank + ": duplicate ranks are not refused");
    if (want.has("error")) {
      Json.require(outOfOrder, "rank " + rank + ": got " + got + ", want " + want.get("error"));
      return;
    }
    compare(rank, want, got);
  }

  private static boolean namesTwice(JsonNode inputs) {
    for (JsonNode step : inputs.get("steps")) {
      if (step.get("op").asText().equals("slice")) {
        List<String> names = Json.strings(step.get("names"));
        if (names.stream().distinct().count() < names.size()) {
          return true;
        }
      }
    }
    return false;
  }

  private static boolean hasDuplicateRanks(JsonNode mesh) {
    return Json.has(mesh, "ranks")
        && Arrays.stream(Json.ints(mesh.get("ranks"))).distinct().count()
            < mesh.get("ranks").size();
  }

  private static boolean isOutOfOrderSlice(JsonNode inputs) {
    if (!Json.has(inputs.get("mesh"), "dim_names") || inputs.get("steps").isEmpty()) {
      return false;
    }
    JsonNode last = inputs.get("steps").get(inputs.get("steps").size() - 1);
    if (!last.get("op").asText().equals("slice")) {
      return false;
    }
    List<String> names = Json.strings(last.get("names"));
    List<String> dims = Json.strings(inputs.get("mesh").get("dim_names"));
    int before = -1;
    boolean descending = false;
    for (String n : names) {
      int at = dims.indexOf(n);
      if (at < 0 || names.stream().filter(n::equals).count() > 1) {
        return false;
      }
      descending |= at < before;
      before = at;
    }
    return descending;
  }

  private static Object describe(int rank, JsonNode inputs) {
    Object m = build(inputs.get("mesh"));
    for (JsonNode step : inputs.get("steps")) {
      m = apply((DeviceMesh) m, step);
    }
    if (m instanceof DeviceMesh mesh && isOutOfOrderSlice(inputs)) {
      checkTransposed(rank, mesh);
    }
    return m instanceof DeviceMesh mesh ? new Description(mesh) : m;
  }

  /** A slice in another order must hold the ranks that index arithmetic on the root gives. */
  private static void checkTransposed(int rank, DeviceMesh mesh) {
    DeviceMesh root = mesh.getRoot();
    List<String> names = java.util.Objects.requireNonNull(mesh.dimNames());
    int[] rootRanks = root.ranks();
    int[] rootShape = root.shape();
    int position = -1;
    for (int i = 0; i < rootRanks.length; i++) {
      position = rootRanks[i] == rank ? i : position;
    }
    int[] mine = unravel(position, rootShape);
    int[] shape = mesh.shape();
    int[] ranks = mesh.ranks();
    for (int i = 0; i < ranks.length; i++) {
      int[] index = unravel(i, shape);
      int[] at = mine.clone();
      for (int d = 0; d < index.length; d++) {
        at[root.dimIndex(names.get(d))] = index[d];
      }
      int flat = 0;
      for (int d = 0; d < at.length; d++) {
        flat = flat * rootShape[d] + at[d];
      }
      Json.requireEqual("transposed rank " + i, rootRanks[flat], ranks[i]);
    }
  }

  private static int[] unravel(int index, int[] shape) {
    int[] out = new int[shape.length];
    int rest = index;
    for (int d = shape.length - 1; d >= 0; d--) {
      out[d] = rest % shape[d];
      rest /= shape[d];
    }
    return out;
  }

  /** What is compared of a mesh. */
  private record Description(DeviceMesh mesh) {}

  static DeviceMesh build(JsonNode spec) {
    String device = spec.has("device") ? spec.get("device").asText() : "cpu";
    String[] names =
        Json.has(spec, "dim_names")
            ? Json.strings(spec.get("dim_names")).toArray(new String[0])
            : new String[0];
    int[] shape = Json.ints(spec.get("shape"));
    return spec.get("api").asText().equals("init_device_mesh")
        ? DeviceMesh.initDeviceMesh(device, shape, names)
        : DeviceMesh.of(device, Json.ints(spec.get("ranks")), shape, names);
  }

  private static Object apply(DeviceMesh m, JsonNode s) {
    boolean named = s.has("dim") && s.get("dim").isTextual();
    return switch (s.get("op").asText()) {
      case "slice" -> m.get(Json.strings(s.get("names")).toArray(new String[0]));
      case "flatten" -> Json.has(s, "name") ? m.flatten(s.get("name").asText()) : m.flatten();
      case "unflatten" -> {
        int[] sizes = Json.ints(s.get("sizes"));
        String[] names = Json.strings(s.get("names")).toArray(new String[0]);
        yield named
            ? m.unflatten(s.get("dim").asText(), sizes, names)
            : m.unflatten(s.get("dim").asInt(), sizes, names);
      }
      case "concatenate" -> {
        List<DeviceMesh> parts = new ArrayList<>();
        for (JsonNode slice : s.get("slices")) {
          parts.add(m.get(Json.strings(slice).toArray(new String[0])));
        }
        yield DeviceMesh.concatenate(parts);
      }
      case "root" -> m.getRoot();
      case "get_group" -> {
        ProcessGroup group =
            !s.has("dim")
                ? m.getGroup()
                : named ? m.getGroup(s.get("dim").asText()) : m.getGroup(s.get("dim").asInt());
        yield group.ranks();
      }
      case "get_local_rank" ->
          !s.has("dim")
              ? m.getLocalRank()
              : named
                  ? m.getLocalRank(s.get("dim").asText())
                  : m.getLocalRank(s.get("dim").asInt());
      case "size" -> named ? m.size(s.get("dim").asText()) : m.size(s.get("dim").asInt());
      case "all_submeshes" ->
          m.allSubmeshes(s.get("name").asText()).stream().map(Arrays::toString).toList();
      case "equal" -> m.equals(build(s.get("other")));
      default -> throw new Mismatch("unknown step " + s);
    };
  }

  private static void compare(int rank, JsonNode want, Object got) {
    String at = "rank " + rank + " ";
    if (want.has("value")) {
      Json.requireEqual(at + "value", spaced(want.get("value")), got);
      return;
    }
    if (!(got instanceof Description d)) {
      throw new Mismatch(at + "got " + got + ", want a mesh");
    }
    DeviceMesh m = d.mesh();
    Json.requireEqual(at + "shape", spaced(want.get("shape")), Arrays.toString(m.shape()));
    Json.requireEqual(at + "ndim", want.get("ndim"), m.ndim());
    Json.requireEqual(at + "size", want.get("size"), m.size());
    Json.requireEqual(
        at + "names",
        Json.has(want, "dim_names") ? Json.strings(want.get("dim_names")) : "null",
        String.valueOf(m.dimNames()));
    Json.requireEqual(
        at + "ranks", Arrays.toString(Json.ints(want.get("ranks"))), Arrays.toString(m.ranks()));
    if (!Json.has(want, "coordinate")) {
      Json.require(m.getCoordinate() == null, at + "coordinate is not null");
      return;
    }
    Json.requireEqual(
        at + "coordinate", spaced(want.get("coordinate")), Arrays.toString(m.getCoordinate()));
    for (int i = 0; i < m.ndim(); i++) {
      Json.requireEqual(
          at + "local rank", want.get("local_rank_per_dim").get(i), m.getLocalRank(i));
      Json.requireEqual(
          at + "group", spaced(want.get("group_ranks_per_dim").get(i)), m.getGroup(i).ranks());
      Json.requireEqual(
          at + "group", spaced(want.get("all_groups").get(i)), m.getAllGroups().get(i).ranks());
    }
  }

  /** A JSON value as Java's collections print. */
  private static String spaced(JsonNode node) {
    return node.toString().replace(",", ", ").replace("\"", "");
  }
}
