package dev.weft.tensor.autograd;

import dev.weft.tensor.Storage;
import dev.weft.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * What autograd knows of one tensor. Belongs to the tensor; used by the thread that runs forward or
 * backward through it.
 */
public final class AutogradMeta {
  // Whether backward has to look for such hooks at all.
  private static volatile boolean anyPostAccumulateHook;

  boolean requiresGrad;
  @Nullable Node gradFn;
  int outputIndex;
  int versionWhenRecorded;
  @Nullable Tensor grad;
  // True where this object holds the reference that keeps the gradient's memory.
  private boolean ownsGrad;
  private @Nullable List<UnaryOperator<Tensor>> hooks;
  private @Nullable List<Consumer<Tensor>> postAccumulateHooks;

  /** Replaces the gradient; {@code owned} says that a reference to its storages comes with it. */
  void setGrad(@Nullable Tensor next, boolean owned) {
    Tensor before = grad;
    boolean ownedBefore = ownsGrad;
    grad = next;
    ownsGrad = owned;
    if (before != null && ownedBefore && before != next) {
      for (Storage s : before.storages()) {
        s.release();
      }
    }
  }

  List<UnaryOperator<Tensor>> hooks() {
    if (hooks == null) {
      hooks = new ArrayList<>();
    }
    return hooks;
  }

  Tensor runHooks(Tensor gradient) {
    return hooks == null ? gradient : Node.runHooks(hooks, gradient);
  }

  static boolean anyPostAccumulateHook() {
    return anyPostAccumulateHook;
  }

  boolean hasPostAccumulateHooks() {
    return postAccumulateHooks != null;
  }

  void addPostAccumulateHook(Consumer<Tensor> hook) {
    if (postAccumulateHooks == null) {
      postAccumulateHooks = new ArrayList<>();
    }
    postAccumulateHooks.add(hook);
    anyPostAccumulateHook = true;
  }

  void runPostAccumulateHooks(Tensor leaf) {
    if (postAccumulateHooks != null) {
      for (Consumer<Tensor> hook : List.copyOf(postAccumulateHooks)) {
        hook.accept(leaf);
      }
    }
  }
}
