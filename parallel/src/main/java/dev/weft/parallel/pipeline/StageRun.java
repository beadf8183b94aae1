package dev.weft.parallel.pipeline;

import dev.weft.nn.Module;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.autograd.SplitBackward;
import dev.weft.tensor.op.Creation;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/** One stage of a rank: its module, its channels, and the microbatches that are under way in it. */
final class StageRun {
  private final int stage;
  private final Module module;
  private final @Nullable Trace trace;
  // The neighbour's and the skips', in the same order on all ranks.
  private final List<Channel> incoming = new ArrayList<>();
  private final List<Channel> outgoing = new ArrayList<>();
  private final Map<Integer, Pass> passes = new HashMap<>();

  /**
   * A microbatch between its forward and the end of its backward.
   *
   * @param inputs what came over the channels; leaves
   * @param outputs what goes over the channels, or the loss
   * @param closeOutputs those whose memory is theirs alone
   */
  private record Pass(
      List<Tensor> inputs,
      List<Tensor> outputs,
      List<Tensor> closeOutputs,
      List<SplitBackward> rest) {}

  StageRun(int stage, Module module, List<Channel> channels, @Nullable Trace trace) {
    this.stage = stage;
    this.module = module;
    this.trace = trace;
    for (Channel c : channels) {
      if (c.to() == stage) {
        incoming.add(c);
      }
      if (c.from() == stage) {
        outgoing.add(c);
      }
    }
  }

  /** Asks ahead for what an action starts with. */
  void post(Action a) {
    if (a.isForward()) {
      incoming.forEach(c -> c.post(true, a.microbatch()));
    } else if (a.passesGradients()) {
      outgoing.forEach(c -> c.post(false, a.microbatch()));
    }
  }

  /**
   * Runs a forward and sends what others wait for.
   *
   * @param input what the first stage starts with
   * @param end applied to the module's output: the loss on the last stage
   */
  Tensor forward(Action a, @Nullable Tensor input, UnaryOperator<Tensor> end) {
    List<Tensor> inputs = new ArrayList<>();
    for (Channel c : incoming) {
      Tensor t = c.activation(a.microbatch());
      inputs.add(t.dtype().isFloatingPoint() ? t.requiresGrad(true) : t);
    }
    long start = System.nanoTime();
    Tensor x = input != null ? input : inputs.get(0);
    Map<String, Tensor> skips = new HashMap<>();
    for (int i = input != null ? 0 : 1; i < inputs.size(); i++) {
      skips.put(incoming.get(i).name(), inputs.get(i));
    }
    List<Tensor> outputs = new ArrayList<>();
    List<Tensor> close = new ArrayList<>();
    // What backward needs is saved; the rest goes, or all microbatches would be held.
    try (TensorScope scope = TensorScope.open()) {
      Map<String, Tensor> around = Skip.exchange(skips);
      try {
        outputs.add(end.apply(module.call(x)));
      } finally {
        Map<String, Tensor> unused = Skip.exchange(around);
      }
      for (Channel c : outgoing) {
        if (c.isSkip()) {
          Tensor stashed = skips.remove(c.name());
          if (stashed == null) {
            throw new IllegalStateException(
                "Pipeline: stage " + stage + " has not stashed the skip '" + c.name() + "'");
          }
          outputs.add(stashed);
        }
      }
      if (!skips.isEmpty()) {
        throw new IllegalStateException(
            "Pipeline: stage "
                + stage
                + " left the skips "
                + skips.keySet()
                + "; expected each that comes to be popped, and each that is stashed to be"
                + " declared by withSkip");
      }
      for (int i = 0; i < outputs.size(); i++) {
        boolean own = outputs.get(i).isWholeStorageOf(scope);
        outputs.set(i, scope.keep(outputs.get(i)));
        if (own) {
          close.add(outputs.get(i));
        }
      }
    }
    passes.put(a.microbatch(), new Pass(inputs, outputs, close, new ArrayList<>()));
    trace(a, start);
    for (int i = 0; i < outgoing.size(); i++) {
      outgoing.get(i).sendActivation(a.microbatch(), outputs.get(i));
    }
    return outputs.get(0);
  }

  /** Runs a backward, or its first pass, and sends what others wait for. */
  void backward(Action a) {
    Pass pass = Objects.requireNonNull(passes.get(a.microbatch()));
    List<@Nullable Tensor> gradients = new ArrayList<>();
    for (Channel c : outgoing) {
      gradients.add(c.gradient(a.microbatch()));
    }
    long start = System.nanoTime();
    if (outgoing.isEmpty()) {
      gradients.add(null);
    }
    List<Tensor> roots = new ArrayList<>();
    List<@Nullable Tensor> seeds = new ArrayList<>();
    for (int i = 0; i < pass.outputs.size(); i++) {
      if (pass.outputs.get(i).requiresGrad()) {
        roots.add(pass.outputs.get(i));
        seeds.add(gradients.get(i));
      }
    }
    try (TensorScope scope = TensorScope.openWithoutWaiting()) {
      List<@Nullable Tensor> sent = new ArrayList<>();
      if (a.kind() == Action.Kind.INPUT) {
        List<Tensor> wanted = pass.inputs.stream().filter(Tensor::requiresGrad).toList();
        SplitBackward rest = Autograd.backwardInputs(roots, seeds, wanted);
        pass.rest.add(rest);
        int next = 0;
        for (Tensor t : pass.inputs) {
          sent.add(t.requiresGrad() ? rest.inputGradients().get(next++) : null);
        }
      } else {
        Autograd.backward(roots, seeds, false);
        pass.inputs.forEach(t -> sent.add(t.grad()));
      }
      trace(a, start);
      for (int i = 0; i < incoming.size(); i++) {
        Tensor g = sent.get(i);
        incoming
            .get(i)
            .sendGradient(a.microbatch(), g == null ? Creation.zerosLike(pass.inputs.get(i)) : g);
      }
    }
    for (Tensor g : gradients) {
      if (g != null) {
        g.close();
      }
    }
    if (a.isLast()) {
      end(a.microbatch());
    }
  }

  /** Runs the second pass of a backward. */
  void weights(Action a) {
    long start = System.nanoTime();
    Objects.requireNonNull(passes.get(a.microbatch())).rest.forEach(SplitBackward::finish);
    trace(a, start);
    end(a.microbatch());
  }

  private void end(int microbatch) {
    Pass pass = Objects.requireNonNull(passes.remove(microbatch));
    for (Tensor t : pass.inputs) {
      t.setGrad(null);
      t.close();
    }
    pass.closeOutputs.forEach(Tensor::close);
  }

  private void trace(Action a, long start) {
    if (trace != null) {
      trace.add(a, start);
    }
  }

  /** Forgets what a step has left, after a failure. */
  void clear() {
    passes.values().forEach(p -> p.rest.forEach(SplitBackward::close));
    passes.clear();
  }
}
