package dev.weft.c10d;

import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The collectives of a group: arguments are checked, then the call goes through the dispatcher. */
final class Collectives {
  private static final List<StridedTensor> NONE = List.of();

  private Collectives() {}

  static Work allReduce(ProcessGroup g, Tensor tensor, ReduceOp op, CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "all_reduce");
    }
    StridedTensor t = Checks.plain("all_reduce", "tensor", tensor);
    Checks.reducible("all_reduce", op, t);
    return CollectiveOps.call(
        CollectiveOps.ALL_REDUCE,
        g,
        op,
        null,
        List.of(t),
        NONE,
        options,
        run(t, "all_reduce", () -> backend(g, t).allReduce(t, op, options)));
  }

  static Work broadcast(ProcessGroup g, Tensor tensor, int root, CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "broadcast");
    }
    StridedTensor t = Checks.plain("broadcast", "tensor", tensor);
    Checks.peer("broadcast", "root", root, g);
    return CollectiveOps.call(
        CollectiveOps.BROADCAST,
        g,
        null,
        root,
        List.of(t),
        NONE,
        options,
        run(t, "broadcast", () -> backend(g, t).broadcast(t, root, options)));
  }

  static Work reduce(
      ProcessGroup g, Tensor tensor, int root, ReduceOp op, CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "reduce");
    }
    StridedTensor t = Checks.plain("reduce", "tensor", tensor);
    Checks.reducible("reduce", op, t);
    Checks.peer("reduce", "root", root, g);
    return CollectiveOps.call(
        CollectiveOps.REDUCE,
        g,
        op,
        root,
        List.of(t),
        NONE,
        options,
        run(t, "reduce", () -> backend(g, t).reduce(t, root, op, options)));
  }

  static Work allGather(
      ProcessGroup g, List<? extends Tensor> outputs, Tensor input, CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "all_gather");
    }
    StridedTensor in = Checks.plain("all_gather", "input", input);
    List<StridedTensor> outs = Checks.plainList("all_gather", "outputs", outputs, g.size());
    Checks.sameKind("all_gather", "outputs", outs, in);
    Checks.numel("all_gather", "outputs[" + g.rank() + "]", outs.get(g.rank()), in.numel());
    return CollectiveOps.call(
        CollectiveOps.ALL_GATHER,
        g,
        null,
        null,
        outs,
        List.of(in),
        options,
        run(in, "all_gather", () -> backend(g, in).allGather(outs, in, options)));
  }

  static Work allGatherIntoTensor(
      ProcessGroup g, Tensor output, Tensor input, CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "all_gather_into_tensor");
    }
    StridedTensor in = Checks.plain("all_gather_into_tensor", "input", input);
    StridedTensor out = Checks.plain("all_gather_into_tensor", "output", output);
    Checks.sameKind("all_gather_into_tensor", "output", List.of(out), in);
    Checks.numel("all_gather_into_tensor", "output", out, in.numel() * g.size());
    return CollectiveOps.call(
        CollectiveOps.ALL_GATHER_INTO_TENSOR,
        g,
        null,
        null,
        List.of(out),
        List.of(in),
        options,
        run(
            in,
            "all_gather_into_tensor",
            () -> backend(g, in).allGatherIntoTensor(out, in, options)));
  }

  static Work reduceScatter(
      ProcessGroup g,
      Tensor output,
      List<? extends Tensor> inputs,
      ReduceOp op,
      CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "reduce_scatter");
    }
    StridedTensor out = Checks.plain("reduce_scatter", "output", output);
    List<StridedTensor> ins = Checks.plainList("reduce_scatter", "inputs", inputs, g.size());
    Checks.reducible("reduce_scatter", op, out);
    Checks.sameKind("reduce_scatter", "inputs", ins, out);
    Checks.numel("reduce_scatter", "inputs[" + g.rank() + "]", ins.get(g.rank()), out.numel());
    return CollectiveOps.call(
        CollectiveOps.REDUCE_SCATTER,
        g,
        op,
        null,
        List.of(out),
        ins,
        options,
        run(out, "reduce_scatter", () -> backend(g, out).reduceScatter(out, ins, op, options)));
  }

  static Work reduceScatterTensor(
      ProcessGroup g, Tensor output, Tensor input, ReduceOp op, CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "reduce_scatter_tensor");
    }
    StridedTensor out = Checks.plain("reduce_scatter_tensor", "output", output);
    StridedTensor in = Checks.plain("reduce_scatter_tensor", "input", input);
    Checks.reducible("reduce_scatter_tensor", op, out);
    Checks.sameKind("reduce_scatter_tensor", "input", List.of(in), out);
    Checks.numel("reduce_scatter_tensor", "input", in, out.numel() * g.size());
    return CollectiveOps.call(
        CollectiveOps.REDUCE_SCATTER_TENSOR,
        g,
        op,
        null,
        List.of(out),
        List.of(in),
        options,
        run(
            out,
            "reduce_scatter_tensor",
            () -> backend(g, out).reduceScatterTensor(out, in, op, options)));
  }

  static Work allToAll(
      ProcessGroup g,
      List<? extends Tensor> outputs,
      List<? extends Tensor> inputs,
      CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "all_to_all");
    }
    List<StridedTensor> outs = Checks.plainList("all_to_all", "outputs", outputs, g.size());
    List<StridedTensor> ins = Checks.plainList("all_to_all", "inputs", inputs, g.size());
    Checks.sameKind("all_to_all", "outputs", outs, ins.get(0));
    Checks.sameKind("all_to_all", "inputs", ins, ins.get(0));
    Checks.numel(
        "all_to_all", "outputs[" + g.rank() + "]", outs.get(g.rank()), ins.get(g.rank()).numel());
    return CollectiveOps.call(
        CollectiveOps.ALL_TO_ALL,
        g,
        null,
        null,
        outs,
        ins,
        options,
        run(ins.get(0), "all_to_all", () -> backend(g, ins.get(0)).allToAll(outs, ins, options)));
  }

  static Work allToAllSingle(
      ProcessGroup g,
      Tensor output,
      Tensor input,
      long @Nullable [] outputSplits,
      long @Nullable [] inputSplits,
      CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "all_to_all_single");
    }
    StridedTensor out = Checks.plain("all_to_all_single", "output", output);
    StridedTensor in = Checks.plain("all_to_all_single", "input", input);
    Checks.sameKind("all_to_all_single", "output", List.of(out), in);
    long[] outSplits = Checks.splits("outputSplits", outputSplits, "output", out, g.size());
    long[] inSplits = Checks.splits("inputSplits", inputSplits, "input", in, g.size());
    Checks.sameRows("all_to_all_single", out, in);
    boolean even = outputSplits == null && inputSplits == null;
    return CollectiveOps.call(
        CollectiveOps.ALL_TO_ALL_SINGLE,
        g,
        null,
        null,
        List.of(out),
        List.of(in),
        options,
        run(
            in,
            "all_to_all_single",
            () ->
                even
                    ? backend(g, in).allToAllEven(out, in, outSplits, inSplits, options)
                    : backend(g, in).allToAllSingle(out, in, outSplits, inSplits, options)));
  }

  static Work gather(
      ProcessGroup g,
      Tensor input,
      @Nullable List<? extends Tensor> outputs,
      int root,
      CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "gather");
    }
    Checks.peer("gather", "root", root, g);
    StridedTensor in = Checks.plain("gather", "input", input);
    List<StridedTensor> outs = Checks.rootList("gather", "outputs", outputs, root, g);
    if (outs != null) {
      Checks.sameKind("gather", "outputs", outs, in);
      Checks.numel("gather", "outputs[" + root + "]", outs.get(root), in.numel());
    }
    return CollectiveOps.call(
        CollectiveOps.GATHER,
        g,
        null,
        root,
        outs == null ? NONE : outs,
        List.of(in),
        options,
        run(in, "gather", () -> backend(g, in).gather(in, outs, root, options)));
  }

  static Work scatter(
      ProcessGroup g,
      Tensor output,
      @Nullable List<? extends Tensor> inputs,
      int root,
      CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "scatter");
    }
    Checks.peer("scatter", "root", root, g);
    StridedTensor out = Checks.plain("scatter", "output", output);
    List<StridedTensor> ins = Checks.rootList("scatter", "inputs", inputs, root, g);
    if (ins != null) {
      Checks.sameKind("scatter", "inputs", ins, out);
      Checks.numel("scatter", "inputs[" + root + "]", ins.get(root), out.numel());
    }
    return CollectiveOps.call(
        CollectiveOps.SCATTER,
        g,
        null,
        root,
        List.of(out),
        ins == null ? NONE : ins,
        options,
        run(out, "scatter", () -> backend(g, out).scatter(out, ins, root, options)));
  }

  static Work barrier(ProcessGroup g, CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "barrier");
    }
    return CollectiveOps.call(
        CollectiveOps.BARRIER,
        g,
        null,
        null,
        NONE,
        NONE,
        options,
        () -> g.backends().forControl().barrier(options));
  }

  static Work send(
      ProcessGroup g, Tensor tensor, int destination, int tag, CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "send");
    }
    StridedTensor t = Checks.plain("send", "tensor", tensor);
    Checks.otherPeer("send", "destination", destination, g);
    Checks.tag("send", tag);
    return CollectiveOps.call(
        CollectiveOps.SEND,
        g,
        null,
        destination,
        NONE,
        List.of(t),
        options,
        run(t, "send", () -> backend(g, t).send(t, destination, tag, options)));
  }

  static Work recv(ProcessGroup g, Tensor tensor, int source, int tag, CollectiveOptions options) {
    if (!g.isMember()) {
      return outside(g, "recv");
    }
    StridedTensor t = Checks.plain("recv", "tensor", tensor);
    if (source != ProcessGroup.ANY_SOURCE) {
      Checks.otherPeer("recv", "source", source, g);
    }
    Checks.tag("recv", tag);
    return CollectiveOps.call(
        CollectiveOps.RECV,
        g,
        null,
        source,
        List.of(t),
        NONE,
        options,
        run(t, "recv", () -> backend(g, t).receive(t, source, tag, options)));
  }

  private static Backend backend(ProcessGroup g, StridedTensor t) {
    return g.backend(t.device());
  }

  /** Tensors without data need no backend: shapes have been checked, nothing moves. */
  private static Supplier<Work> run(StridedTensor t, String name, Supplier<Work> body) {
    return t.device().isMeta() ? () -> done(name) : body;
  }

  private static Work outside(ProcessGroup g, String name) {
    NonMembers.warn(g, name);
    return done(name);
  }

  private static Work done(String name) {
    CompletableWork work = new CompletableWork(name, 0, List.of(), List.of());
    boolean unused = work.complete();
    return work;
  }
}
