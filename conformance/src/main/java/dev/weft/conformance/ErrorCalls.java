package dev.weft.conformance;

import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.P2POp;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** The calls of {@code errors.json} that are made inside a world. */
final class ErrorCalls {
  private static final String AWAY = "did not call";

  private ErrorCalls() {}

  static @Nullable Object perform(String name, int r, int n) {
    ProcessGroup g = Distributed.world();
    int slash = name.indexOf('/');
    String kind = name.substring(slash + 1);
    return switch (name.substring(0, slash)) {
      case "all_gather", "all_gather_into_tensor", "gather", "scatter" -> gathering(g, name, r, n);
      case "reduce_scatter", "reduce_scatter_tensor", "all_to_all", "all_to_all_single" ->
          scattering(g, name, n);
      case "broadcast" -> done(g.broadcast(ones(1), kind.endsWith("large") ? n : -1));
      case "reduce" -> done(g.reduce(ones(1), n, ReduceOp.SUM));
      case "send", "recv", "batch_isend_irecv" -> messages(g, name, r, n);
      case "all_reduce" -> allReduce(g, kind, r);
      case "monitored_barrier" -> monitoredBarrier(g, kind, r, n);
      case "barrier" -> r == 0 ? AWAY : done(g.barrier());
      default -> lifecycle(g, name);
    };
  }

  private static @Nullable Object gathering(ProcessGroup g, String name, int r, int n) {
    return switch (name) {
      case "all_gather/list_too_short" -> done(g.allGather(list(n - 1), ones(1)));
      case "all_gather/list_too_long" -> done(g.allGather(list(n + 1), ones(1)));
      case "all_gather/output_shape" ->
          done(g.allGather(IntStream.range(0, n).mapToObj(i -> ones(2)).toList(), ones(1)));
      case "all_gather/output_dtype" -> done(g.allGather(of(DType.FLOAT64, n), ones(1)));
      case "all_gather_into_tensor/output_size" ->
          done(g.allGatherIntoTensor(ones(n + 1), ones(1)));
      case "all_gather_into_tensor/dtype" ->
          done(g.allGatherIntoTensor(ones(n).to(DType.FLOAT64), ones(1)));
      case "gather/dst_without_list" -> done(g.gather(ones(1), null, 0));
      case "gather/list_on_non_dst" -> done(g.gather(ones(1), list(n), 0));
      case "gather/list_length" -> done(g.gather(ones(1), r == 0 ? list(n - 1) : null, 0));
      case "scatter/src_without_list" -> done(g.scatter(ones(1), null, 0));
      case "scatter/list_on_non_src" -> done(g.scatter(ones(1), list(n), 0));
      case "scatter/list_length" -> done(g.scatter(ones(1), r == 0 ? list(n + 1) : null, 0));
      default -> throw new CaseRunner.Mismatch("no code for " + name);
    };
  }

  private static @Nullable Object scattering(ProcessGroup g, String name, int n) {
    long[] even = new long[n];
    Arrays.fill(even, 1);
    return switch (name) {
      case "reduce_scatter/list_length" ->
          done(g.reduceScatter(ones(1), list(n + 1), ReduceOp.SUM));
      case "reduce_scatter_tensor/size" ->
          done(g.reduceScatterTensor(ones(1), ones(n + 1), ReduceOp.SUM));
      case "reduce_scatter_tensor/dtype" ->
          done(g.reduceScatterTensor(ones(1), ones(n).to(DType.INT32), ReduceOp.SUM));
      case "all_to_all/list_length" -> done(g.allToAll(list(n + 1), list(n + 1)));
      case "all_to_all/dtypes_differ" -> done(g.allToAll(of(DType.INT32, n), list(n)));
      case "all_to_all_single/indivisible" ->
          done(g.allToAllSingle(ones(n + 1), ones(n + 1), null, null));
      case "all_to_all_single/split_sum" -> {
        long[] more = even.clone();
        more[0] = 2;
        yield done(g.allToAllSingle(ones(n), ones(n), even, more));
      }
      case "all_to_all_single/split_count" ->
          done(g.allToAllSingle(ones(n), ones(n), new long[] {n}, new long[] {n}));
      case "all_to_all_single/dtype" ->
          done(g.allToAllSingle(ones(n).to(DType.INT32), ones(n), null, null));
      default -> throw new CaseRunner.Mismatch("no code for " + name);
    };
  }

  private static @Nullable Object messages(ProcessGroup g, String name, int r, int n) {
    int next = (r + 1) % n;
    return switch (name) {
      case "send/to_self" -> done(g.send(ones(1), r, 0));
      case "recv/from_self" -> done(g.recv(ones(1), r, 0));
      case "send/dst_too_large" -> done(g.send(ones(1), n, 0));
      case "send/dst_negative" -> done(g.send(ones(1), -1, 0));
      case "send/negative_tag" -> done(g.send(ones(1), next, -1));
      case "send/non_contiguous" -> {
        Tensor square = Tensor.of(new double[] {1, 1, 1, 1}, 2, 2).t();
        yield done(g.send(square.select(1, 0), next, 0));
      }
      case "recv/nobody_sends" -> done(g.recv(ones(1), next, 0));
      case "batch_isend_irecv/empty" -> Distributed.batchIsendIrecv(List.of());
      case "batch_isend_irecv/mixed_groups" ->
          Distributed.batchIsendIrecv(
              List.of(
                  P2POp.isend(ones(1), next),
                  P2POp.irecv(ones(1), (r + n - 1) % n).in(Distributed.newGroup())));
      default -> throw new CaseRunner.Mismatch("no code for " + name);
    };
  }

  private static @Nullable Object allReduce(ProcessGroup g, String kind, int r) {
    return switch (kind) {
      case "shape_mismatch_between_ranks" -> done(g.allReduce(ones(r + 1), ReduceOp.SUM));
      case "absent_rank" -> r == 0 ? AWAY : done(g.allReduce(ones(1), ReduceOp.SUM));
      case "int_AVG" -> done(g.allReduce(ones(1).to(DType.INT32), ReduceOp.AVG));
      case "float_BAND" -> done(g.allReduce(ones(1), ReduceOp.BAND));
      case "PREMUL_SUM" -> sum(g, ones(1), ReduceOp.premulSum(2));
      case "int16" -> sum(g, ones(1).to(DType.INT16), ReduceOp.SUM);
      case "quantized_or_meta" ->
          done(g.allReduce(Tensors.empty(DType.FLOAT32, Device.META, 1), ReduceOp.SUM));
      default -> throw new CaseRunner.Mismatch("no code for all_reduce/" + kind);
    };
  }

  private static @Nullable Object monitoredBarrier(ProcessGroup g, String kind, int r, int n) {
    boolean away =
        switch (kind) {
          case "all_present" -> false;
          case "last_rank_missing" -> r == n - 1;
          case "rank_zero_missing" -> r == 0;
          default -> r > 0;
        };
    if (away) {
      return AWAY;
    }
    g.monitoredBarrier(ErrorsRunner.TIMEOUT, kind.endsWith("wait_all"));
    return null;
  }

  private static @Nullable Object lifecycle(ProcessGroup g, String name) {
    switch (name) {
      case "init/twice" -> {
        return Distributed.init();
      }
      case "work/used_after_destroy" -> {
        Work work = g.allReduce(ones(1), ReduceOp.SUM, CollectiveOptions.ASYNC);
        work.await();
        Distributed.destroy();
        return work.isCompleted();
      }
      default -> Distributed.destroy();
    }
    return switch (name) {
      case "destroy/then_all_reduce" -> Distributed.allReduce(ones(1), ReduceOp.SUM);
      case "destroy/twice" -> {
        Distributed.destroy();
        yield "quiet";
      }
      case "destroy/then_get_rank" -> Distributed.rank();
      case "destroy/then_get_world_size" -> Distributed.worldSize();
      default -> throw new CaseRunner.Mismatch("no code for " + name);
    };
  }

  /** Who must be named where the message matters. */
  static void checkMessages(String name, int world, List<ErrorsRunner.Seen> seen) {
    String named =
        switch (name) {
          case "monitored_barrier/last_rank_missing" -> "rank " + (world - 1) + " did not arrive";
          case "monitored_barrier/several_missing" -> "rank 1 did not arrive";
          case "monitored_barrier/several_missing_wait_all" ->
              (world == 2 ? "rank 1" : "ranks " + IntStream.range(1, world).boxed().toList())
                  + " did not arrive";
          case "monitored_barrier/rank_zero_missing" -> "rank 0";
          case "all_reduce/absent_rank", "barrier/absent_rank" -> "rank 0 did not arrive";
          default -> "";
        };
    for (ErrorsRunner.Seen s : seen) {
      Throwable error = s.error();
      Json.require(
          error == null || String.valueOf(error.getMessage()).contains(named),
          "message: got '" + error + "', want '" + named + "' in it");
    }
  }

  private static double sum(ProcessGroup g, Tensor t, ReduceOp op) {
    g.allReduce(t, op).await();
    return t.item();
  }

  private static @Nullable Object done(Work work) {
    work.await();
    return null;
  }

  private static Tensor ones(int n) {
    float[] values = new float[n];
    Arrays.fill(values, 1);
    return Tensor.of(values, n);
  }

  private static List<Tensor> list(int n) {
    return of(DType.FLOAT32, n);
  }

  private static List<Tensor> of(DType dtype, int n) {
    List<Tensor> out = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      out.add(ones(1).to(dtype));
    }
    return out;
  }
}
