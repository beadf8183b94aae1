package dev.weft.tensor.autograd;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Op;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Recording of gradients and the entry to backward. Whether calls are recorded is a property of the
 * thread; backward runs on the thread that calls it.
 */
public final class Autograd {
  private static final ThreadLocal<boolean[]> ENABLED =
      ThreadLocal.withInitial(() -> new boolean[] {true});

  private static final ThreadLocal<@Nullable SavedTensorHooks> SAVED = new ThreadLocal<>();

  private Autograd() {}

  /** Whether calls on this thread are recorded. */
  public static boolean isEnabled() {
    return ENABLED.get()[0];
  }

  /** Switches recording on this thread; returns what it was. */
  public static boolean setEnabled(boolean enabled) {
    boolean[] flag = ENABLED.get();
    boolean before = flag[0];
    flag[0] = enabled;
    return before;
  }

  /** Runs without recording. */
  public static <T extends @Nullable Object> T noGrad(Supplier<T> body) {
    boolean before = setEnabled(false);
    try {
      return body.get();
    } finally {
      setEnabled(before);
    }
  }

  /** Runs without recording. */
  public static void noGrad(Runnable body) {
    boolean before = setEnabled(false);
    try {
      body.run();
    } finally {
      setEnabled(before);
    }
  }

  /** Runs backward from one tensor; see {@link Tensor#backward()}. */
  public static void backward(Tensor root, @Nullable Tensor gradient, boolean retainGraph) {
    new Engine(retainGraph, null).run(List.of(root), gradients(gradient));
  }

  /**
   * Runs backward from several tensors at once.
   *
   * @param gradients one for each root; null for a scalar means 1
   */
  public static void backward(
      List<Tensor> roots, List<? extends @Nullable Tensor> gradients, boolean retainGraph) {
    if (gradients.size() != roots.size()) {
      throw new IllegalArgumentException(
          "gradients has " + gradients.size() + " entries; expected " + roots.size());
    }
    new Engine(retainGraph, null).run(roots, gradients);
  }

  /**
   * The gradients of outputs with respect to inputs, without touching any tensor's {@code grad}.
   * Only paths that lead to the inputs are computed.
   *
   * @param gradOutputs one for each output; null for a scalar means 1
   * @return one for each input, null where nothing flowed there; the caller's scope owns them
   */
  public static List<@Nullable Tensor> grad(
      List<Tensor> outputs,
      List<Tensor> inputs,
      List<? extends @Nullable Tensor> gradOutputs,
      boolean retainGraph) {
    if (gradOutputs.size() != outputs.size()) {
      throw new IllegalArgumentException(
          "gradOutputs has " + gradOutputs.size() + " entries; expected " + outputs.size());
    }
    return new Engine(retainGraph, inputs).run(outputs, gradOutputs);
  }

  /**
   * The first of two passes of backward: the gradients of some inputs, and nothing else. The work
   * for all other leaves (weights) is left for {@link SplitBackward#finish}, which may run much
   * later, as in zero-bubble pipeline schedules. Both passes together do what {@link
   * #backward(List, List, boolean)} does, but that the inputs' gradients are returned and not
   * accumulated. Hooks on results run in the first pass, those of weights in the second.
   *
   * @param inputs leaves or results; may be empty
   */
  public static SplitBackward backwardInputs(
      List<Tensor> roots, List<? extends @Nullable Tensor> gradients, List<Tensor> inputs) {
    if (gradients.size() != roots.size()) {
      throw new IllegalArgumentException(
          "gradients has " + gradients.size() + " entries; expected " + roots.size());
    }
    SplitBackward rest = new SplitBackward();
    try {
      rest.inputGradients(new Engine(false, inputs).runFirst(roots, gradients, rest));
    } catch (RuntimeException | Error e) {
      rest.close();
      throw e;
    }
    return rest;
  }

  private static List<@Nullable Tensor> gradients(@Nullable Tensor one) {
    java.util.ArrayList<@Nullable Tensor> list = new java.util.ArrayList<>();
    list.add(one);
    return list;
  }

  /**
   * Calls {@code hook} with the tensor's gradient during backward; it returns the gradient to go on
   * with (of the same shape). On a leaf it runs before accumulation.
   */
  public static void hook(Tensor tensor, UnaryOperator<Tensor> hook) {
    requireGrad(tensor, "hook");
    AutogradMeta meta = tensor.autograd();
    if (meta.gradFn != null) {
      meta.gradFn.addHook(meta.outputIndex, hook);
    } else {
      meta.hooks().add(hook);
    }
  }

  /**
   * Calls {@code hook} with a leaf once in each backward that reaches it, as soon as its {@code
   * grad} has all contributions of that backward, be it used in one place or in several.
   */
  public static void postAccumulateHook(Tensor leaf, Consumer<Tensor> hook) {
    requireGrad(leaf, "postAccumulateHook");
    if (leaf.autograd().gradFn != null) {
      throw new IllegalArgumentException(
          "postAccumulateHook: the tensor is not a leaf; it is the result of '"
              + leaf.autograd().gradFn.op()
              + "'");
    }
    leaf.autograd().addPostAccumulateHook(hook);
  }

  /**
   * Runs something once, when the backward that is running on this thread has reached all leaves.
   * To be called from a hook.
   */
  public static void afterBackward(Runnable callback) {
    Engine.whenDone(callback);
  }

  /**
   * Runs something when the second pass of the backward that is running on this thread starts;
   * never if that backward is in one pass. To be called from a hook.
   */
  public static void beforeWeights(Runnable callback) {
    Engine.whenResumed(callback);
  }

  /** Whether this thread is inside a backward. */
  public static boolean isInBackward() {
    return Engine.isRunning();
  }

  /** Whether this thread is inside the first pass of a backward in two. */
  public static boolean isInInputPass() {
    return Engine.isInputPass();
  }

  private static void requireGrad(Tensor t, String what) {
    if (!t.requiresGrad()) {
      throw new IllegalArgumentException(what + ": the tensor does not require a gradient");
    }
  }

  /** Ends {@link #withSavedTensorHooks}. */
  public interface Hooked extends AutoCloseable {
    @Override
    void close();
  }

  /**
   * Has hooks keep what calls on this thread save from now on, in the place of those that are open;
   * null for none.
   */
  public static Hooked withSavedTensorHooks(@Nullable SavedTensorHooks hooks) {
    SavedTensorHooks before = SAVED.get();
    SAVED.set(hooks);
    return () -> SAVED.set(before);
  }

  /** The hooks that are open on this thread. */
  public static @Nullable SavedTensorHooks savedTensorHooks() {
    return SAVED.get();
  }

  /** Attaches an object to the node of a tensor just computed, for its backward formula. */
  public static void attach(Tensor output, Object attachment) {
    Node node = output.autograd().gradFn;
    if (node != null) {
      node.attachment = attachment;
    }
  }

  // ---- for the dispatcher and for Tensor ----

  /** Whether a call must be recorded. */
  public static boolean needsNode(Op op, Tensor[] inputs) {
    if (op.backward() == null || !isEnabled()) {
      return false;
    }
    for (Tensor t : inputs) {
      if (t.requiresGrad()) {
        return true;
      }
    }
    return false;
  }

  /** Refuses in-place changes that gradients cannot follow. */
  public static void checkInPlace(Op op, Tensor[] inputs, boolean record) {
    if (!isEnabled()) {
      return;
    }
    Tensor target = inputs[0];
    if (target.requiresGrad() && target.isLeaf()) {
      throw new IllegalStateException(
          op
              + ": a leaf that requires a gradient ("
              + target.describe()
              + ") cannot be changed in place; do it under Autograd.noGrad");
    }
    if (!record) {
      for (Tensor t : inputs) {
        if (t.requiresGrad()) {
          throw new IllegalStateException(
              op + " has no backward formula, and an input requires a gradient; use noGrad");
        }
      }
      return;
    }
    Node node = target.autograd().gradFn;
    if (node != null && node.op().form() == Op.Form.VIEW) {
      throw new IllegalStateException(
          op
              + ": the target is a view ('"
              + node.op()
              + "') of a tensor that takes part in autograd; change the base, or a copy");
    }
  }

  /** Makes the node of a call and hangs it on the outputs. */
  public static void record(Op op, Attrs attrs, Tensor[] inputs, Tensor[] outputs) {
    boolean inPlace = op.form() == Op.Form.IN_PLACE;
    for (Tensor t : inputs) {
      AutogradMeta meta = t.autogradOrNull();
      if (meta != null
          && meta.gradFn != null
          && meta.gradFn.op().form() == Op.Form.VIEW
          && meta.versionWhenRecorded != t.version() - (inPlace && t == inputs[0] ? 1 : 0)) {
        throw new IllegalStateException(
            op
                + ": an input is a view ('"
                + meta.gradFn.op()
                + "') whose base was changed in place after the view was made; make the view again");
      }
    }
    for (int i = 0; i < outputs.length && !inPlace; i++) {
      for (Tensor t : inputs) {
        if (outputs[i] == t) {
          outputs[i] = t.alias();
        }
      }
    }
    Node node = new Node(op, attrs, inputs, outputs, inPlace);
    for (int i = 0; i < outputs.length; i++) {
      if (outputs[i].dtype().isFloatingPoint()) {
        AutogradMeta meta = outputs[i].autograd();
        meta.requiresGrad = true;
        meta.gradFn = node;
        meta.outputIndex = i;
        meta.versionWhenRecorded = outputs[i].version();
      }
    }
    node.saveOutputs(outputs);
  }

  /** Whether a tensor takes part. */
  public static boolean requiresGrad(@Nullable AutogradMeta meta) {
    return meta != null && meta.requiresGrad;
  }

  /** Marks a leaf. */
  public static void setRequiresGrad(Tensor tensor, boolean requires) {
    AutogradMeta meta = tensor.autograd();
    if (meta.gradFn != null && !requires) {
      throw new IllegalStateException(
          "requiresGrad(false) is for leaves; use detach() on the result of '"
              + meta.gradFn.op()
              + "'");
    }
    if (requires && !tensor.dtype().isFloatingPoint()) {
      throw new IllegalArgumentException(
          "requiresGrad: only floating-point tensors have gradients; dtype is " + tensor.dtype());
    }
    meta.requiresGrad = requires;
  }

  /** The call that made a tensor, or null for a leaf. */
  public static @Nullable Node gradFn(@Nullable AutogradMeta meta) {
    return meta == null ? null : meta.gradFn;
  }

  /** A leaf's gradient. */
  public static @Nullable Tensor grad(@Nullable AutogradMeta meta) {
    return meta == null ? null : meta.grad;
  }

  /**
   * Sets or clears a leaf's gradient. The memory of the old one goes unless something retains it;
   * the new one is retained.
   */
  public static void setGrad(Tensor leaf, @Nullable Tensor gradient) {
    if (gradient != null) {
      if (!java.util.Arrays.equals(gradient.shape(), leaf.shape())) {
        throw new IllegalArgumentException(
            "grad has " + gradient.describe() + "; expected the shape of " + leaf.describe());
      }
      gradient.storages().forEach(s -> s.retain());
    }
    leaf.autograd().setGrad(gradient, gradient != null);
  }
}
