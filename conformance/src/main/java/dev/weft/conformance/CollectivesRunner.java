package dev.weft.conformance;

import static dev.weft.conformance.Json.longs;
import static dev.weft.conformance.RecordedTensors.like;
import static dev.weft.conformance.RecordedTensors.read;
import static dev.weft.conformance.RecordedTensors.withStrides;
import static dev.weft.conformance.RecordedTensors.zeros;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.DType;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/** Runs the cases of {@code collectives.json}. */
final class CollectivesRunner implements CaseRunner {
  private static final Duration TIMEOUT = Duration.ofSeconds(20);

  private final IntFunction<LocalWorld> worlds;

  /** Runs cases in worlds that are made for each. */
  CollectivesRunner(IntFunction<LocalWorld> worlds) {
    this.worlds = worlds;
  }

  /** What a rank got: tensors, or what it threw. */
  private record Result(List<StridedTensor> tensors, @Nullable RuntimeException failure) {}

  @Override
  public Outcome run(JsonNode recorded) {
    String name = recorded.get("name").asText();
    if (name.startsWith("all_reduce/complex64")) {
      return Outcome.notApplicable("there is no complex dtype");
    }
    LocalWorld world = worlds.apply(recorded.get("ranks").size()).timeout(TIMEOUT);
    try (TensorScope scope = TensorScope.open()) {
      if (ObjectCalls.knows(recorded.get("call").asText())) {
        return ObjectCalls.run(recorded, world);
      }
      if (SparseCalls.isSparse(recorded)) {
        return SparseCalls.run(recorded, world);
      }
      return grade(recorded, world.call(rank -> attempt(recorded, rank)));
    }
  }

  private static Result attempt(JsonNode recorded, int rank) {
    try {
      return new Result(perform(recorded, rank), null);
    } catch (RuntimeException e) {
      return new Result(List.of(), e);
    }
  }

  private static Outcome grade(JsonNode recorded, List<Result> results) {
    double tolerance = recorded.path("tol").asDouble(0);
    boolean orderSensitive = recorded.path("order_sensitive").asBoolean(false);
    boolean raises = recorded.has("raises_on_every_rank");
    long failures = results.stream().filter(r -> r.failure() != null).count();
    if (raises && failures == results.size()) {
      return results.stream().allMatch(r -> r.failure() instanceof IllegalArgumentException)
          ? Outcome.PASSED
          : Outcome.failed("refused with " + results.get(0).failure());
    }
    if (failures > 0) {
      return Outcome.failed("threw " + results.stream().map(Result::failure).toList());
    }
    if (raises) {
      return gradeBetter(recorded, results);
    }
    for (int rank = 0; rank < results.size(); rank++) {
      JsonNode outs = recorded.get("ranks").get(rank).get("out");
      List<StridedTensor> got = results.get(rank).tensors();
      int i = 0;
      for (JsonNode want : outs) {
        if (!want.has("hex") && !want.has("unspecified")) {
          continue;
        }
        if (i >= got.size()) {
          return Outcome.failed("rank " + rank + ": output " + i + " is missing");
        }
        String difference = RecordedTensors.compare(got.get(i), want, tolerance, orderSensitive);
        if (difference != null) {
          return recorded.has("quirk")
              ? gradeBetter(recorded, results)
              : Outcome.failed("rank " + rank + ", output " + i + ": " + difference);
        }
        i++;
      }
    }
    return Outcome.PASSED;
  }

  /** Where more works than in the reference: right by the inputs of all ranks. */
  private static Outcome gradeBetter(JsonNode recorded, List<Result> results) {
    String call = recorded.get("call").asText();
    JsonNode ranks = recorded.get("ranks");
    for (int me = 0; me < results.size(); me++) {
      List<StridedTensor> got = results.get(me).tensors();
      for (int r = 0; r < results.size(); r++) {
        String difference =
            switch (call) {
              case "all_gather" ->
                  RecordedTensors.compare(got.get(r), ranks.get(r).get("in").get(0), 0, false);
              case "all_gather_into_tensor" ->
                  RecordedTensors.compare(
                      part(got.get(0), r, results.size()), ranks.get(r).get("in").get(0), 0, false);
              case "all_to_all" ->
                  RecordedTensors.compare(got.get(r), ranks.get(r).get("in").get(me), 0, false);
              case "broadcast" ->
                  RecordedTensors.compare(
                      got.get(0),
                      ranks.get(recorded.get("params").get("src").asInt()).get("in").get(0),
                      0,
                      false);
              case "all_reduce" ->
                  sums(got.get(0), ranks, recorded.get("params").path("factor").asDouble(1));
              default -> "works where the reference refuses, and nothing says what is right";
            };
        if (difference != null) {
          return Outcome.failed("rank " + me + ", part " + r + ": " + difference);
        }
      }
    }
    return Outcome.deviation("works here, and equals the dense result");
  }

  private static @Nullable String sums(StridedTensor got, JsonNode ranks, double factor) {
    double[] sum = new double[(int) got.numel()];
    for (JsonNode rank : ranks) {
      double[] values = read(rank.get("in").get(0)).toDoubleArray();
      for (int i = 0; i < sum.length; i++) {
        sum[i] += values[i] * factor;
      }
    }
    double[] values = got.toDoubleArray();
    for (int i = 0; i < sum.length; i++) {
      if (Math.abs(values[i] - sum[i]) > 1e-5 + 1e-5 * Math.abs(sum[i])) {
        return "element " + i + ": got " + values[i] + ", want " + sum[i];
      }
    }
    return null;
  }

  private static StridedTensor part(StridedTensor t, int index, int parts) {
    long n = t.numel() / parts;
    return t.withLayout(new long[] {n}, new long[] {1}, t.offset() + index * n);
  }

  /** What one rank of a running world gets, graded by its own outputs; every rank calls it. */
  static Outcome ofRank(JsonNode recorded, int rank) {
    Result mine = attempt(recorded, rank);
    RuntimeException failure = mine.failure();
    if (failure != null) {
      return recorded.has("raises_on_every_rank") && failure instanceof IllegalArgumentException
          ? Outcome.PASSED
          : Outcome.failed("threw " + failure);
    }
    if (recorded.has("raises_on_every_rank")) {
      return Outcome.deviation("works here");
    }
    double tolerance = recorded.path("tol").asDouble(0);
    boolean orderSensitive = recorded.path("order_sensitive").asBoolean(false);
    int i = 0;
    for (JsonNode want : recorded.get("ranks").get(rank).get("out")) {
      if (!want.has("hex") && !want.has("unspecified")) {
        continue;
      }
      if (i >= mine.tensors().size()) {
        return Outcome.failed("output " + i + " is missing");
      }
      String difference =
          RecordedTensors.compare(mine.tensors().get(i), want, tolerance, orderSensitive);
      if (difference != null) {
        return recorded.has("quirk")
            ? Outcome.deviation(difference)
            : Outcome.failed("output " + i + ": " + difference);
      }
      i++;
    }
    return Outcome.PASSED;
  }

  // ---- the calls ----

  private static List<StridedTensor> perform(JsonNode recorded, int rank) {
    ProcessGroup group = Distributed.world();
    JsonNode params = recorded.get("params");
    JsonNode mine = recorded.get("ranks").get(rank);
    List<StridedTensor> in = new ArrayList<>();
    for (JsonNode node : mine.get("in")) {
      StridedTensor t = read(node);
      in.add(params.has("stride") ? withStrides(t, longs(params.get("stride"))) : t);
    }
    int root = root(recorded);
    String call = recorded.get("call").asText();
    return switch (call) {
      case "all_reduce" -> {
        boolean async = params.path("async_op").asBoolean(false);
        Work work = group.allReduce(in.get(0), reduceOp(params), CollectiveOptions.async(async));
        work.await();
        work.await(); // a finished one can be awaited again
        awaitDevice(work, in.get(0));
        Json.require(work.isCompleted() && work.isSuccess(), "an awaited work is not successful");
        Json.require(work.exception() == null, "an awaited work has an exception");
        Json.require(
            work.future().join().get(0) == in.get(0), "the result of the work is not the input");
        yield List.of(in.get(0));
      }
      case "reduce" -> {
        Work unused = group.reduce(in.get(0), root, reduceOp(params));
        yield List.of(in.get(0));
      }
      case "broadcast" -> {
        Work unused = group.broadcast(in.get(0), root);
        yield List.of(in.get(0));
      }
      case "all_gather" -> allGather(recorded, group, in.get(0));
      case "all_gather_into_tensor" -> allGatherIntoTensor(params, mine, group, in.get(0));
      case "reduce_scatter" -> {
        StridedTensor out = like(in.get(0));
        Work unused = group.reduceScatter(out, in, reduceOp(params));
        yield List.of(out);
      }
      case "reduce_scatter_tensor" -> {
        long[] shape = in.get(0).shape().clone();
        shape[0] /= group.size();
        StridedTensor out = zeros(in.get(0).dtype(), shape);
        Work unused = group.reduceScatterTensor(out, in.get(0), reduceOp(params));
        yield List.of(out);
      }
      case "all_to_all_single" -> allToAllSingle(params, group, in.get(0), rank);
      case "all_to_all" -> {
        List<StridedTensor> outs = new ArrayList<>();
        for (JsonNode other : recorded.get("ranks")) {
          outs.add(like(read(other.get("in").get(rank))));
        }
        Work unused = group.allToAll(outs, in);
        yield outs;
      }
      case "gather" -> {
        List<StridedTensor> outs = copies(in.get(0), group.size());
        Work unused = group.gather(in.get(0), rank == root ? outs : null, root);
        yield rank == root ? outs : List.of();
      }
      case "scatter" -> {
        JsonNode out = mine.get("out").get(0);
        StridedTensor target = zeros(DType.of(out.get("dtype").asText()), longs(out.get("shape")));
        Work unused = group.scatter(target, rank == root ? in : null, root);
        yield List.of(target);
      }
      case "barrier" -> {
        Work unused = group.barrier();
        yield List.of();
      }
      default -> PointToPointCalls.perform(recorded, group, in);
    };
  }

  /** On a GPU, awaiting makes the stream wait; this makes the host wait as well. */
  static void awaitDevice(Work work, StridedTensor t) {
    if (t.device().isCuda()) {
      work.await(TIMEOUT);
    }
  }

  /** The root that a case names, else the one that its data shows. */
  private static int root(JsonNode recorded) {
    JsonNode params = recorded.get("params");
    if (params.has("src") || params.has("dst")) {
      return params.path(params.has("src") ? "src" : "dst").asInt();
    }
    JsonNode ranks = recorded.get("ranks");
    for (int r = 0; r < ranks.size(); r++) {
      JsonNode in = ranks.get(r).get("in");
      JsonNode out = ranks.get(r).get("out");
      boolean found =
          switch (recorded.get("call").asText()) {
            case "broadcast" -> in.get(0).get("hex").equals(out.get(0).get("hex"));
            case "gather" -> !out.isEmpty();
            case "reduce" -> out.get(0).has("hex");
            case "scatter" -> !in.isEmpty();
            default -> true;
          };
      if (found) {
        return r;
      }
    }
    throw new AssertionError("no root in " + recorded.get("name"));
  }

  private static ReduceOp reduceOp(JsonNode params) {
    String op = params.path("op").asText("SUM");
    return op.equals("PREMUL_SUM")
        ? ReduceOp.premulSum(params.get("factor").asDouble())
        : ReduceOp.of(op);
  }

  private static List<StridedTensor> allGather(
      JsonNode recorded, ProcessGroup group, StridedTensor in) {
    List<StridedTensor> outs = new ArrayList<>();
    boolean transposed = recorded.get("name").asText().endsWith("transpose_output");
    for (JsonNode other : recorded.get("ranks")) {
      StridedTensor out = like(read(other.get("in").get(0)));
      if (transposed) {
        out = withStrides(out, new long[] {1, out.shape()[0]});
      }
      outs.add(out);
    }
    Work unused = group.allGather(outs, in);
    return outs;
  }

  private static List<StridedTensor> allGatherIntoTensor(
      JsonNode params, JsonNode mine, ProcessGroup group, StridedTensor in) {
    long[] shape;
    if (params.has("out_shape")) {
      shape = longs(params.get("out_shape"));
    } else if (mine.has("out")) {
      shape = longs(mine.get("out").get(0).get("shape"));
    } else {
      shape = new long[] {group.size()};
    }
    StridedTensor out = zeros(in.dtype(), shape);
    Work unused = group.allGatherIntoTensor(out, in);
    return List.of(out);
  }

  private static List<StridedTensor> allToAllSingle(
      JsonNode params, ProcessGroup group, StridedTensor in, int rank) {
    long[] inSplits = null;
    long[] outSplits = null;
    long[] shape = in.shape().clone();
    if (params.has("by_rank")) {
      JsonNode own = params.get("by_rank").get(rank);
      inSplits = longs(own.get("input_split_sizes"));
      outSplits = longs(own.get("output_split_sizes"));
      shape[0] = Arrays.stream(outSplits).sum();
    }
    StridedTensor out = zeros(in.dtype(), shape);
    Work unused = group.allToAllSingle(out, in, outSplits, inSplits);
    return List.of(out);
  }

  static List<StridedTensor> copies(StridedTensor t, int n) {
    List<StridedTensor> out = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      out.add(like(t));
    }
    return out;
  }

  static StridedTensor vector(double... values) {
    StridedTensor t = zeros(DType.FLOAT32, values.length);
    Regions.copy((StridedTensor) Tensor.of(values, values.length), t);
    return t;
  }
}
