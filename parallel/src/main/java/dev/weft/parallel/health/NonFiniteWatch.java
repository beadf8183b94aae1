package dev.weft.parallel.health;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.ObjectCollectives;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.dtensor.DTensor;
import dev.weft.nn.Module;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Unary;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Looks for NaN and infinities in what modules give, in the gradients that come back to them and in
 * the gradients of parameters, and names the first module, rank and step. Used by the thread that
 * acts for a rank; {@link #check} is a collective of the world.
 *
 * <p>Each look sums up a tensor and waits for the sum, and so for collectives and the GPU: a tool
 * to find a fault with, not one to leave on. Infinities count, so a module that gives a mask of
 * infinities by intent is reported, too.
 */
public final class NonFiniteWatch implements AutoCloseable {
  private final List<? extends Module> models;
  private final List<Module.Handle> handles = new ArrayList<>();
  private long looks;
  private @Nullable Finding first;

  /** Where in a step, in order. */
  private enum Phase {
    FORWARD,
    BACKWARD,
    PARAMETERS
  }

  /**
   * The first thing a rank found in a step.
   *
   * @param rank its global rank
   * @param phase where in the step
   * @param look the number of the look, of this rank
   * @param cameIn whether an input of the module was bad already
   * @param text what is bad
   */
  record Finding(int rank, Phase phase, long look, boolean cameIn, String text) {}

  private NonFiniteWatch(List<? extends Module> models) {
    this.models = models;
  }

  /** Watches a model, all of its modules. */
  public static NonFiniteWatch over(Module model) {
    return over(List.of(model));
  }

  /** Watches the stages of a pipeline that this rank has. */
  public static NonFiniteWatch over(List<? extends Module> stages) {
    NonFiniteWatch watch = new NonFiniteWatch(List.copyOf(stages));
    for (Module stage : stages) {
      stage
          .namedModules()
          .forEach(
              (path, module) ->
                  watch.handles.add(
                      module.forwardHook((m, in, out) -> watch.forward(path, m, in, out))));
    }
    return watch;
  }

  private Tensor forward(String path, Module module, Tensor[] inputs, Tensor output) {
    if (first != null) {
      return output;
    }
    String name = module.getClass().getSimpleName();
    String where = path.isEmpty() ? "the model (" + name + ")" : "'" + path + "' (" + name + ")";
    if (look(Phase.FORWARD, "the output of " + where, output, inputs)) {
      return output;
    }
    if (output.requiresGrad() && Autograd.isEnabled()) {
      Autograd.hook(
          output,
          gradient -> {
            boolean unused =
                first != null
                    || look(Phase.BACKWARD, "the gradient of the output of " + where, gradient);
            return gradient;
          });
    }
    return output;
  }

  private boolean look(Phase phase, String what, Tensor tensor, Tensor... inputs) {
    looks++;
    long bad = nonFinite(tensor);
    if (bad == 0) {
      return false;
    }
    boolean cameIn = false;
    for (Tensor in : inputs) {
      cameIn |= nonFinite(in) > 0;
    }
    String text =
        "%s is not finite: %d of %d elements are NaN or infinite, %s%s"
            .formatted(
                what,
                bad,
                local(tensor).numel(),
                tensor.describe(),
                cameIn ? "; so was its input" : "");
    first = new Finding(Distributed.rank(), phase, looks, cameIn, text);
    return true;
  }

  /**
   * Ends a step, before the update: looks at the gradients of parameters if nothing was found so
   * far, and tells all ranks what was found first: what forward gave before what came of it in
   * backward, and a module with a good input before one whose input was bad already (from another
   * rank, or from the data).
   *
   * @param step for the message
   * @throws NonFiniteException on all ranks, with the same message
   */
  public void check(long step) {
    for (Module model : models) {
      for (Map.Entry<String, Tensor> p : model.namedParameters().entrySet()) {
        Tensor gradient = p.getValue().grad();
        boolean unused =
            first != null
                || gradient == null
                || look(
                    Phase.PARAMETERS, "the gradient of parameter '" + p.getKey() + "'", gradient);
      }
    }
    Finding own = first;
    first = null;
    looks = 0;
    if (!anywhere(own != null)) {
      return;
    }
    List<Finding> all =
        ObjectCollectives.allGatherObject(own, Finding.class, null).stream()
            .filter(Objects::nonNull)
            .map(Objects::requireNonNull)
            .sorted(
                Comparator.comparing(Finding::phase)
                    .thenComparing(Finding::cameIn)
                    .thenComparingLong(Finding::look)
                    .thenComparingInt(Finding::rank))
            .toList();
    Finding origin = all.get(0);
    List<Integer> others = all.stream().skip(1).map(Finding::rank).sorted().toList();
    throw new NonFiniteException(
        "step %d, rank %d: %s%s"
            .formatted(
                step,
                origin.rank(),
                origin.text(),
                others.isEmpty() ? "" : "; then found on ranks " + others + ", too"));
  }

  private static boolean anywhere(boolean here) {
    ProcessGroup world = Distributed.world();
    try (TensorScope scope = TensorScope.open()) {
      Tensor any = Tensor.of(new long[] {here ? 1 : 0}, 1).to(world.controlDevice());
      Work unused = world.allReduce(any, ReduceOp.MAX);
      return any.toLongArray()[0] > 0;
    }
  }

  private static Tensor local(Tensor tensor) {
    return tensor instanceof DTensor d ? d.toLocal() : tensor;
  }

  /** How many elements of this rank's part are not finite. */
  private static long nonFinite(Tensor tensor) {
    if (!tensor.dtype().isFloatingPoint() || tensor.device().isMeta()) {
      return 0;
    }
    try (TensorScope scope = TensorScope.open()) {
      return Autograd.noGrad(
          () -> {
            Tensor part = local(tensor);
            // A sum is finite only if all elements are; it may overflow without.
            if (part.numel() == 0 || Double.isFinite(part.sum().item())) {
              return 0L;
            }
            // x - x is NaN where x is not finite, else 0.
            Tensor marks = Unary.isNan(part.sub(part)).to(DType.INT64);
            return (long) marks.sum().item();
          });
    }
  }

  /** Takes the hooks off again. */
  @Override
  public void close() {
    handles.forEach(Module.Handle::close);
    handles.clear();
  }
}
