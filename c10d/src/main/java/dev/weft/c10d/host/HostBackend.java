package dev.weft.c10d.host;

import dev.weft.c10d.Backend;
import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.GroupContext;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.Storage;
import dev.weft.tensor.StridedTensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The host backend of one group on one rank. Thread-safe. */
final class HostBackend implements Backend {
  private static final List<StridedTensor> NONE = List.of();

  private final String name;
  private final Algorithms algorithms;
  private final HostGroup group;
  private final OperationQueue queue;
  private final Messages messages;

  HostBackend(String name, GroupContext context, Endpoint endpoint, Algorithms algorithms) {
    this.name = name;
    this.algorithms = algorithms;
    this.group = new HostGroup(context, endpoint);
    this.queue = new OperationQueue(group);
    this.messages = new Messages(group);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String algorithm() {
    return algorithms.describe();
  }

  @Override
  public Work allReduce(StridedTensor tensor, ReduceOp op, CollectiveOptions options) {
    return submit(
        "all_reduce",
        options,
        List.of(tensor),
        NONE,
        (round, staging) -> algorithms.allReduce(round, staging, tensor, op));
  }

  @Override
  public Work broadcast(StridedTensor tensor, int root, CollectiveOptions options) {
    return submit(
        "broadcast",
        options,
        List.of(tensor),
        NONE,
        (round, staging) -> algorithms.broadcast(round, staging, tensor, root));
  }

  @Override
  public Work reduce(StridedTensor tensor, int root, ReduceOp op, CollectiveOptions options) {
    return submit(
        "reduce",
        options,
        List.of(tensor),
        NONE,
        (round, staging) -> algorithms.reduce(round, staging, tensor, root, op));
  }

  @Override
  public Work allGather(
      List<StridedTensor> outputs, StridedTensor input, CollectiveOptions options) {
    return submit(
        "all_gather",
        options,
        outputs,
        List.of(input),
        (round, staging) ->
            algorithms.allGather(
                round,
                staging,
                "all_gather",
                outs(staging, outputs),
                staging.in(input),
                input.dtype()));
  }

  @Override
  public Work allGatherIntoTensor(
      StridedTensor output, StridedTensor input, CollectiveOptions options) {
    return submit(
        "all_gather_into_tensor",
        options,
        List.of(output),
        List.of(input),
        (round, staging) ->
            algorithms.allGather(
                round,
                staging,
                "all_gather_into_tensor",
                parts(staging.out(output)),
                staging.in(input),
                input.dtype()));
  }

  @Override
  public Work reduceScatter(
      StridedTensor output, List<StridedTensor> inputs, ReduceOp op, CollectiveOptions options) {
    return submit(
        "reduce_scatter",
        options,
        List.of(output),
        inputs,
        (round, staging) ->
            algorithms.reduceScatter(
                round,
                staging,
                "reduce_scatter",
                staging.out(output),
                ins(staging, inputs, List.of(output), group.rank()),
                output.dtype(),
                op));
  }

  @Override
  public Work reduceScatterTensor(
      StridedTensor output, StridedTensor input, ReduceOp op, CollectiveOptions options) {
    return submit(
        "reduce_scatter_tensor",
        options,
        List.of(output),
        List.of(input),
        (round, staging) -> {
          Piece out = staging.out(output);
          List<Piece> in = parts(staging.in(input));
          if (overlapElsewhere(out, in)) {
            in = parts(staging.copy(input));
          }
          algorithms.reduceScatter(
              round, staging, "reduce_scatter_tensor", out, in, output.dtype(), op);
        });
  }

  @Override
  public Work allToAll(
      List<StridedTensor> outputs, List<StridedTensor> inputs, CollectiveOptions options) {
    return submit(
        "all_to_all",
        options,
        outputs,
        inputs,
        (round, staging) ->
            algorithms.allToAll(
                round,
                staging,
                "all_to_all",
                outs(staging, outputs),
                ins(staging, inputs, outputs, -1),
                inputs.get(0).dtype()));
  }

  @Override
  public Work allToAllSingle(
      StridedTensor output,
      StridedTensor input,
      long[] outputSplits,
      long[] inputSplits,
      CollectiveOptions options) {
    return submit(
        "all_to_all_single",
        options,
        List.of(output),
        List.of(input),
        (round, staging) -> {
          List<Piece> out = rows(staging.out(output), output, outputSplits);
          Piece in = sharesStorage(output, input) ? staging.copy(input) : staging.in(input);
          algorithms.allToAll(
              round,
              staging,
              "all_to_all_single",
              out,
              rows(in, input, inputSplits),
              input.dtype());
        });
  }

  @Override
  public Work gather(
      StridedTensor input,
      @Nullable List<StridedTensor> outputs,
      int root,
      CollectiveOptions options) {
    return submit(
        "gather",
        options,
        outputs == null ? NONE : outputs,
        List.of(input),
        (round, staging) ->
            algorithms.gather(
                round,
                staging,
                staging.in(input),
                outputs == null ? null : outs(staging, outputs),
                root,
                input.dtype()));
  }

  @Override
  public Work scatter(
      StridedTensor output,
      @Nullable List<StridedTensor> inputs,
      int root,
      CollectiveOptions options) {
    return submit(
        "scatter",
        options,
        List.of(output),
        inputs == null ? NONE : inputs,
        (round, staging) ->
            algorithms.scatter(
                round,
                staging,
                staging.out(output),
                inputs == null ? null : ins(staging, inputs, List.of(output), root),
                root,
                output.dtype()));
  }

  @Override
  public Work barrier(CollectiveOptions options) {
    return submit("barrier", options, NONE, NONE, (round, staging) -> algorithms.barrier(round));
  }

  @Override
  public Work send(StridedTensor tensor, int destination, int tag, CollectiveOptions options) {
    return messages.send(tensor, destination, tag, options);
  }

  @Override
  public Work receive(StridedTensor tensor, int source, int tag, CollectiveOptions options) {
    return messages.receive(tensor, source, tag, options);
  }

  @Override
  public void abort(Throwable cause) {
    group.abort(cause);
    messages.abort(
        new DistributedException("group " + group.describe() + " was aborted: " + cause, cause));
  }

  @Override
  public void close(Duration timeout) {
    boolean idle = queue.close(timeout);
    messages.close();
    group.mailbox().closeGroup(group.id());
    algorithms.close(idle);
  }

  private Work submit(
      String name,
      CollectiveOptions options,
      List<StridedTensor> outputs,
      List<StridedTensor> inputs,
      OperationQueue.Body body) {
    Duration timeout = options.timeout();
    return queue.submit(
        name,
        options.async(),
        timeout == null ? group.context().timeout() : timeout,
        outputs,
        held(outputs, inputs),
        body);
  }

  private static List<Storage> held(List<StridedTensor> outputs, List<StridedTensor> inputs) {
    if (outputs.size() == 1 && inputs.isEmpty()) {
      return List.of(outputs.get(0).storage()); // most calls; a list that grows takes more
    }
    List<Storage> held = new ArrayList<>(outputs.size() + inputs.size());
    for (int i = 0; i < outputs.size(); i++) {
      held.add(outputs.get(i).storage());
    }
    for (int i = 0; i < inputs.size(); i++) {
      held.add(inputs.get(i).storage());
    }
    return held;
  }

  // ---- pieces of tensors ----

  private static List<Piece> outs(Staging staging, List<StridedTensor> tensors) {
    return tensors.stream().map(staging::out).toList();
  }

  /**
   * Inputs to lend while outputs are written: a copy where they share memory, but for the one that
   * no peer reads.
   */
  private static List<Piece> ins(
      Staging staging, List<StridedTensor> tensors, List<StridedTensor> outputs, int own) {
    List<Piece> out = new ArrayList<>(tensors.size());
    for (int i = 0; i < tensors.size(); i++) {
      StridedTensor t = tensors.get(i);
      boolean shared = i != own && outputs.stream().anyMatch(o -> sharesStorage(o, t));
      out.add(shared ? staging.copy(t) : staging.in(t));
    }
    return out;
  }

  private static boolean sharesStorage(StridedTensor a, StridedTensor b) {
    return a.storage() == b.storage();
  }

  private boolean overlapElsewhere(Piece out, List<Piece> in) {
    for (int r = 0; r < in.size(); r++) {
      Piece p = in.get(r);
      boolean overlaps =
          out.address() < p.address() + p.bytes() && p.address() < out.address() + out.bytes();
      if (overlaps && (r != group.rank() || p.address() != out.address())) {
        return true;
      }
    }
    return false;
  }

  /** Equal parts, one a rank. */
  private List<Piece> parts(Piece whole) {
    int n = group.size();
    long each = whole.bytes() / n;
    List<Piece> out = new ArrayList<>(n);
    for (int r = 0; r < n; r++) {
      out.add(new Piece(whole.address() + r * each, each));
    }
    return out;
  }

  /** Parts of so many rows each. */
  private static List<Piece> rows(Piece whole, StridedTensor t, long[] splits) {
    long rows = t.shape()[0];
    long each = rows == 0 ? 0 : whole.bytes() / rows;
    long at = whole.address();
    List<Piece> out = new ArrayList<>(splits.length);
    for (long s : splits) {
      out.add(new Piece(at, s * each));
      at += s * each;
    }
    return out;
  }
}
