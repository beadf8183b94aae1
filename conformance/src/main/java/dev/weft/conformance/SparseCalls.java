package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.SparseCoo;
import dev.weft.tensor.StridedTensor;
import java.util.Arrays;
import java.util.List;

/** The recorded sums of sparse tensors. */
final class SparseCalls {
  private SparseCalls() {}

  static boolean isSparse(JsonNode recorded) {
    return recorded
        .get("ranks")
        .get(0)
        .get("in")
        .path(0)
        .path("layout")
        .asText("")
        .equals("sparse_coo");
  }

  static Outcome run(JsonNode recorded, LocalWorld world) {
    ReduceOp op = ReduceOp.of(recorded.get("params").get("op").asText());
    List<Object> got =
        world.call(
            rank -> {
              SparseCoo mine = read(recorded.get("ranks").get(rank).get("in").get(0));
              try {
                return Distributed.world().allReduceSparse(mine, op);
              } catch (RuntimeException e) {
                return e;
              }
            });
    for (int r = 0; r < got.size(); r++) {
      JsonNode rank = recorded.get("ranks").get(r);
      Object result = got.get(r);
      if (rank.has("raises")) {
        Json.require(
            result instanceof IllegalArgumentException,
            "rank " + r + ": got " + result + ", want " + rank.get("raises"));
      } else if (result instanceof SparseCoo sum) {
        requireSame("rank " + r, rank.get("out").get(0), sum);
      } else {
        throw new CaseRunner.Mismatch("rank " + r + ": unexpected " + result);
      }
    }
    return Outcome.PASSED;
  }

  private static SparseCoo read(JsonNode node) {
    return new SparseCoo(
        RecordedTensors.read(node.get("indices")),
        RecordedTensors.read(node.get("values")),
        Json.longs(node.get("shape")));
  }

  private static void requireSame(String what, JsonNode want, SparseCoo got) {
    Json.requireEqual(
        what + " shape",
        Arrays.toString(Json.longs(want.get("shape"))),
        Arrays.toString(got.shape()));
    for (String part : List.of("indices", "values")) {
      StridedTensor t = (StridedTensor) (part.equals("indices") ? got.indices() : got.values());
      Json.requireEqual(
          what + " shape of " + part,
          Arrays.toString(Json.longs(want.get(part).get("shape"))),
          Arrays.toString(t.shape()));
      String difference = RecordedTensors.compare(t, want.get(part), 0, false);
      Json.require(difference == null, what + " " + part + ": " + difference);
    }
  }
}
