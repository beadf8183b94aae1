package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.funcol.FunctionalCollectives;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Dispatcher;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** funcol.json: functional collectives, their gradients, and that inputs are left alone. */
final class FuncolRunner implements CaseRunner {
  private record Seen(
      List<Tensor> outputs, List<@Nullable Tensor> grads, CommLog log, CommLog backward) {}

  @Override
  public Outcome run(JsonNode c) {
    JsonNode i = c.get("inputs");
    JsonNode expected = c.get("expected");
    int world = i.get("world_size").asInt();
    List<Ranks.Result<Seen>> results = Ranks.run(world, rank -> seen(i, rank));
    if (expected.has("error")) {
      return error(i, expected.get("error"), results);
    }
    String deviation = null;
    for (int r = 0; r < world; r++) {
      String at = "rank " + r + " ";
      if (i.get("op").asText().equals("permute") && !isPermutation(i.get("src_dst"))) {
        Json.require(
            results.get(r).error() instanceof IllegalArgumentException,
            at + "not a permutation: got " + results.get(r));
        deviation = "destinations that are no permutation are refused";
        continue;
      }
      Seen got = results.get(r).get();
      JsonNode outputs = expected.get("outputs").get(r);
      for (int k = 0; k < outputs.size(); k++) {
        requireClose(at + "output " + k, outputs.get(k), got.outputs().get(k));
      }
      if (expected.has("grads")) {
        JsonNode grads = expected.get("grads").get(r);
        for (int k = 0; k < grads.size(); k++) {
          Tensor g = got.grads().get(k);
          if (grads.get(k).isNull()) {
            checkExtraGradient(i, r, g);
            deviation = "broadcast and permute have gradients";
          } else {
            Json.require(g != null, at + "gradient " + k + " is missing");
            requireClose(at + "gradient " + k, grads.get(k), g);
          }
        }
        if (deviation == null) {
          ShardingRunner.requireNoMore(
              at + "backward ", expected.get("comm_backward"), got.backward());
        }
      }
      ShardingRunner.requireNoMore(at, expected.get("comm"), got.log());
    }
    return deviation == null ? Outcome.PASSED : Outcome.deviation(deviation);
  }

  private static void requireClose(String what, JsonNode want, Tensor got) {
    JsonTensors.requireClose(what, want, got);
  }

  private static boolean isPermutation(JsonNode destinations) {
    return java.util.Arrays.stream(Json.ints(destinations)).distinct().count()
        == destinations.size();
  }

  /** Where the reference refuses what works here, the result is checked against plain rules. */
  private static Outcome error(JsonNode i, JsonNode error, List<Ranks.Result<Seen>> results) {
    boolean permutation = i.get("op").asText().equals("permute") && isPermutation(i.get("src_dst"));
    boolean average =
        i.has("reduce_op")
            && i.get("reduce_op").asText().equals("avg")
            && !i.get("tensors").get(0).get(0).get("dtype").asText().startsWith("float")
            && !i.get("tensors").get(0).get(0).get("dtype").asText().startsWith("bfloat");
    if (permutation) {
      int[] to = Json.ints(i.get("src_dst"));
      for (int r = 0; r < to.length; r++) {
        JsonTensors.requireClose(
            "rank " + to[r],
            i.get("tensors").get(r).get(0),
            results.get(to[r]).get().outputs().get(0));
      }
      return Outcome.deviation("tensors of any shape can be permuted");
    }
    if (average && results.get(0).error() == null) {
      return Outcome.deviation("averages of integers follow NCCL");
    }
    Ranks.requireErrors(error, results);
    return Outcome.PASSED;
  }

  private static void checkExtraGradient(JsonNode i, int rank, @Nullable Tensor g) {
    if (g == null) {
      throw new Mismatch("rank " + rank + ": the gradient is missing");
    }
    JsonNode upstream = i.get("grad_outputs");
    double[] got = g.toDoubleArray();
    String op = i.get("op").asText();
    if (op.equals("broadcast")) {
      double[] sum = new double[got.length];
      for (JsonNode r : upstream) {
        double[] one = JsonTensors.read(r.get(0)).toDoubleArray();
        for (int k = 0; k < sum.length; k++) {
          sum[k] += rank == i.get("src").asInt() ? one[k] : 0;
        }
      }
      requireSame(rank, sum, got);
    } else if (op.equals("permute")) {
      int to = i.get("src_dst").get(rank).asInt();
      requireSame(rank, JsonTensors.read(upstream.get(to).get(0)).toDoubleArray(), got);
    } else {
      throw new Mismatch("rank " + rank + ": want no gradient");
    }
  }

  private static void requireSame(int rank, double[] want, double[] got) {
    for (int k = 0; k < want.length; k++) {
      Json.require(
          Math.abs(want[k] - got[k]) <= 1e-5 * (1 + Math.abs(want[k])),
          "rank " + rank + " gradient[" + k + "]: got " + got[k] + ", want " + want[k]);
    }
  }

  private static Seen seen(JsonNode i, int rank) {
    List<Tensor> tensors = new ArrayList<>();
    boolean grad = i.has("grad_outputs");
    for (JsonNode t : i.get("tensors").get(rank)) {
      Tensor x = JsonTensors.read(t);
      tensors.add(grad ? x.requiresGrad(true) : x);
    }
    CommLog log = new CommLog();
    List<Tensor> outputs;
    try (Dispatcher.Installed installed = Dispatcher.install(log)) {
      outputs = call(i, rank, tensors);
      outputs.forEach(FunctionalCollectives::waitTensor);
    }
    for (int k = 0; k < tensors.size(); k++) {
      JsonTensors.requireClose(
          "input " + k,
          i.get("tensors").get(rank).get(k),
          tensors.get(k),
          JsonTensors.Tolerance.EXACT);
    }
    CommLog backward = new CommLog();
    List<@Nullable Tensor> grads = new ArrayList<>();
    if (grad) {
      try (Dispatcher.Installed installed = Dispatcher.install(backward)) {
        List<Tensor> upstream = new ArrayList<>();
        i.get("grad_outputs").get(rank).forEach(g -> upstream.add(JsonTensors.read(g)));
        Autograd.backward(outputs, upstream, false);
      }
      tensors.forEach(t -> grads.add(t.grad()));
    }
    return new Seen(outputs, grads, log, backward);
  }

  private static ProcessGroup group(JsonNode i) {
    return i.has("mesh")
        ? Specs.mesh(i.get("mesh")).getGroup(i.get("mesh_dim").asInt())
        : Distributed.world();
  }

  private static List<Tensor> call(JsonNode i, int rank, List<Tensor> t) {
    ProcessGroup g = group(i);
    ReduceOp reduce = i.has("reduce_op") ? ReduceOp.of(i.get("reduce_op").asText()) : ReduceOp.SUM;
    Tensor first = t.get(0);
    return switch (i.get("op").asText()) {
      case "all_reduce" -> List.of(FunctionalCollectives.allReduce(first, reduce, g));
      case "all_gather_single" ->
          List.of(FunctionalCollectives.allGatherTensor(first, i.get("gather_dim").asInt(), g));
      case "reduce_scatter_single" ->
          List.of(
              FunctionalCollectives.reduceScatterTensor(
                  first, reduce, i.get("scatter_dim").asInt(), g));
      case "all_to_all_single" -> List.of(allToAll(i, rank, first, g));
      case "broadcast" -> List.of(FunctionalCollectives.broadcast(first, i.get("src").asInt(), g));
      case "permute" ->
          List.of(FunctionalCollectives.permuteTensor(first, Json.ints(i.get("src_dst")), g));
      case "all_reduce_coalesced" -> FunctionalCollectives.allReduceCoalesced(t, reduce, g);
      case "all_gather_single_coalesced" -> FunctionalCollectives.allGatherTensorCoalesced(t, g);
      case "reduce_scatter_single_coalesced" ->
          FunctionalCollectives.reduceScatterTensorCoalesced(
              t, reduce, Json.ints(i.get("scatter_dims")), g);
      default -> throw new Mismatch("unknown op " + i.get("op"));
    };
  }

  private static Tensor allToAll(JsonNode i, int rank, Tensor t, ProcessGroup g) {
    boolean out = Json.has(i, "output_splits");
    boolean in = Json.has(i, "input_splits");
    if (!out && !in) {
      return FunctionalCollectives.allToAllSingle(t, g);
    }
    if (out != in) {
      // Java's signature takes both or none.
      throw new IllegalArgumentException("one of the splits is missing");
    }
    return FunctionalCollectives.allToAllSingle(
        t,
        Json.longs(i.get("output_splits").get(rank)),
        Json.longs(i.get("input_splits").get(rank)),
        g);
  }
}
