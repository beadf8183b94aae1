package dev.weft.c10d;

import dev.weft.c10d.debug.GroupLog;
import dev.weft.c10d.debug.RecordedCall;
import dev.weft.tensor.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/** Several collectives, or several messages, as one call: all are posted, then awaited together. */
final class Coalesced {
  private Coalesced() {}

  static Work allReduce(
      ProcessGroup g, List<? extends Tensor> tensors, ReduceOp op, CollectiveOptions options) {
    notEmpty("all_reduce_coalesced", "tensors", tensors);
    CollectiveOptions each = posting(options);
    return join(
        "all_reduce_coalesced",
        tensors.size(),
        backends(g, tensors),
        i -> g.allReduce(tensors.get(i), op, each),
        options);
  }

  static Work allGatherIntoTensor(
      ProcessGroup g,
      List<? extends Tensor> outputs,
      List<? extends Tensor> inputs,
      CollectiveOptions options) {
    sameLength("all_gather_into_tensor_coalesced", outputs, inputs);
    CollectiveOptions each = posting(options);
    return join(
        "all_gather_into_tensor_coalesced",
        inputs.size(),
        backends(g, inputs),
        i -> g.allGatherIntoTensor(outputs.get(i), inputs.get(i), each),
        options);
  }

  static Work reduceScatterTensor(
      ProcessGroup g,
      List<? extends Tensor> outputs,
      List<? extends Tensor> inputs,
      ReduceOp op,
      CollectiveOptions options) {
    sameLength("reduce_scatter_tensor_coalesced", outputs, inputs);
    CollectiveOptions each = posting(options);
    return join(
        "reduce_scatter_tensor_coalesced",
        inputs.size(),
        backends(g, inputs),
        i -> g.reduceScatterTensor(outputs.get(i), inputs.get(i), op, each),
        options);
  }

  /** Posts all messages; every one has its own work. */
  static List<Work> messages(List<P2POp> ops, CollectiveOptions options) {
    if (ops.isEmpty()) {
      throw new IllegalArgumentException(
          "batch_isend_irecv: ops is empty; expected at least one send or receive");
    }
    Set<ProcessGroup> groups = new HashSet<>();
    for (P2POp op : ops) {
      ProcessGroup group = op.group();
      groups.add(group == null ? Distributed.world() : group);
    }
    if (groups.size() > 1) {
      throw new IllegalArgumentException(
          "batch_isend_irecv: ops are of "
              + groups.size()
              + " groups "
              + groups.stream().map(ProcessGroup::describe).toList()
              + "; expected one");
    }
    for (int i = 0; i < ops.size(); i++) {
      check(ops.get(i), i);
    }
    ProcessGroup group = groups.iterator().next();
    GroupLog log = group.isMember() ? group.log() : null;
    if (log == null) {
      return post(ops, options);
    }
    log.beginBatch();
    List<Work> works = List.of();
    try {
      works = post(ops, options);
    } finally {
      Duration timeout = options.timeout();
      RecordedCall closing = log.endBatch((timeout == null ? group.timeout() : timeout).toMillis());
      new JointWork("coalesced", works)
          .whenEnded(
              e -> {
                if (e == null) {
                  closing.complete();
                } else {
                  closing.fail(e);
                }
              });
    }
    return works;
  }

  private static List<Work> post(List<P2POp> ops, CollectiveOptions options) {
    List<Work> works = new ArrayList<>(ops.size());
    CollectiveOptions posting = posting(options);
    Set<Backend> backends = new LinkedHashSet<>();
    for (P2POp op : ops) {
      ProcessGroup group = op.group() == null ? Distributed.world() : op.group();
      if (group.isMember() && !op.tensor().device().isMeta()) {
        backends.add(group.backend(op.tensor().device()));
      }
    }
    return coalesced(backends, () -> post(ops, posting, works));
  }

  private static List<Work> post(List<P2POp> ops, CollectiveOptions posting, List<Work> works) {
    for (P2POp op : ops) {
      works.add(
          op.kind() == P2POp.Kind.ISEND
              ? Distributed.send(op.tensor(), op.peer(), op.tag(), op.group(), posting)
              : Distributed.recv(op.tensor(), op.peer(), op.tag(), op.group(), posting));
    }
    return works;
  }

  /** What the body posts, these backends may launch together. */
  private static List<Work> coalesced(Set<Backend> backends, Supplier<List<Work>> body) {
    List<Backend> started = new ArrayList<>();
    List<Work> works;
    try {
      for (Backend b : backends) {
        b.startCoalescing();
        started.add(b);
      }
      works = body.get();
    } catch (RuntimeException | Error e) {
      endAll(started, e);
      throw e;
    }
    for (Backend b : started) {
      b.endCoalescing();
    }
    return works;
  }

  private static void endAll(List<Backend> started, Throwable because) {
    for (Backend b : started) {
      try {
        b.endCoalescing();
      } catch (RuntimeException e) {
        because.addSuppressed(e);
      }
    }
  }

  /** Before anything is posted, so that a bad one leaves nothing half done. */
  private static void check(P2POp op, int index) {
    ProcessGroup g = op.group() == null ? Distributed.world() : op.group();
    if (!g.isMember() || (op.kind() == P2POp.Kind.IRECV && op.peer() == ProcessGroup.ANY_SOURCE)) {
      return;
    }
    String operation = "batch_isend_irecv: ops[" + index + "]";
    Checks.otherPeer(operation, "peer", g.groupRank(op.peer()), g);
    Checks.tag(operation, op.tag());
    Object unused = Checks.plain(operation, "tensor", op.tensor());
  }

  private static Work join(
      String name,
      int count,
      Set<Backend> backends,
      IntFunction<Work> post,
      CollectiveOptions options) {
    List<Work> works =
        coalesced(
            backends,
            () -> {
              List<Work> posted = new ArrayList<>(count);
              for (int i = 0; i < count; i++) {
                posted.add(post.apply(i));
              }
              return posted;
            });
    Work joint = new JointWork(name, works);
    if (!options.async()) {
      joint.await();
    }
    return joint;
  }

  private static Set<Backend> backends(ProcessGroup g, List<? extends Tensor> tensors) {
    Set<Backend> backends = new LinkedHashSet<>();
    for (Tensor t : tensors) {
      if (g.isMember() && !t.device().isMeta()) {
        backends.add(g.backend(t.device()));
      }
    }
    return backends;
  }

  private static CollectiveOptions posting(CollectiveOptions options) {
    return new CollectiveOptions(true, options.timeout());
  }

  private static void notEmpty(String operation, String argument, List<?> tensors) {
    if (tensors.isEmpty()) {
      throw new IllegalArgumentException(
          operation + ": " + argument + " is empty; expected at least one tensor");
    }
  }

  private static void sameLength(String operation, List<?> outputs, List<?> inputs) {
    notEmpty(operation, "inputs", inputs);
    if (outputs.size() != inputs.size()) {
      throw new IllegalArgumentException(
          operation
              + ": outputs has "
              + outputs.size()
              + " tensors and inputs "
              + inputs.size()
              + "; expected as many");
    }
  }
}
