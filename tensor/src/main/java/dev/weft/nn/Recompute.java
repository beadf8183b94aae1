package dev.weft.nn;

import com.google.errorprone.annotations.CanIgnoreReturnValue;
import dev.weft.tensor.DType;
import dev.weft.tensor.GeneratorTape;
import dev.weft.tensor.Storage;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.autograd.SavedTensorHooks;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * Activation recomputation: a piece of a forward computation keeps its inputs only, and is run
 * again in backward, once, when the first of its saved tensors is wanted. Outputs and gradients are
 * those of the piece itself, bit for bit where its kernels repeat. PyTorch's {@code
 * torch.utils.checkpoint} with {@code use_reentrant=False} is the model (Chen et al., "Training
 * Deep Nets with Sublinear Memory Cost", 2016, is the idea).
 *
 * <p>The second run sees the same random numbers, whichever generators gave them, and the same
 * {@link Autocast}. Pieces nest: of an inner one within an outer one not even the inputs are kept.
 * What a piece reads besides its arguments (parameters, captured tensors) must live until backward.
 * An argument or a parameter that has been changed in place in between is an error, as is a second
 * run that saves other tensors than the first. Used by the thread that runs forward and backward.
 */
public final class Recompute implements SavedTensorHooks {
  private final UnaryOperator<Tensor[]> body;
  private final @Nullable DType autocast = Autocast.current();
  private final GeneratorTape random = new GeneratorTape();
  private final List<Input> inputs = new ArrayList<>();
  private final List<Slot> slots = new ArrayList<>();
  private int open;
  private boolean sealed;

  /** One argument, kept by the hooks that were open around the piece. */
  private record Input(
      @Nullable SavedTensorHooks hooks, Object kept, int version, boolean requiresGrad) {
    static Input of(Tensor t) {
      SavedTensorHooks hooks = Autograd.savedTensorHooks();
      if (hooks != null) {
        return new Input(hooks, hooks.pack(t), 0, t.requiresGrad());
      }
      retain(t);
      return new Input(null, t, t.version(), t.requiresGrad());
    }

    Tensor again(int position) {
      Tensor t = hooks == null ? (Tensor) kept : hooks.unpack(kept);
      if (hooks == null) {
        checkVersion("argument " + position, t, version);
      }
      Tensor alias = t.detach();
      return requiresGrad ? alias.requiresGrad(true) : alias;
    }

    void release() {
      if (hooks == null) {
        Recompute.release((Tensor) kept);
      } else {
        hooks.release(kept);
      }
    }
  }

  /** Stands for a tensor that a call of the piece has saved. */
  private static final class Slot {
    final int index;
    final DType dtype;
    final long[] shape;
    // Of a parameter, which the second run reads from the same memory.
    final int leafVersion;
    @Nullable Tensor value;
    int valueVersion;
    boolean released;

    Slot(int index, Tensor t) {
      this.index = index;
      this.dtype = t.dtype();
      this.shape = t.shape();
      this.leafVersion = isParameter(t) ? t.version() : -1;
    }

    static boolean isParameter(Tensor t) {
      return t.isLeaf() && t.requiresGrad();
    }
  }

  private Recompute(UnaryOperator<Tensor[]> body) {
    this.body = body;
  }

  /**
   * Runs a piece that is to be recomputed.
   *
   * @param body the piece; it may be run twice and must do the same each time
   * @param inputs what it starts from
   */
  public static Tensor[] checkpointAll(UnaryOperator<Tensor[]> body, Tensor... inputs) {
    if (!Autograd.isEnabled()) {
      return body.apply(inputs);
    }
    Recompute piece = new Recompute(body);
    for (Tensor t : inputs) {
      piece.inputs.add(Input.of(t));
    }
    try (GeneratorTape.Open recording = piece.random.record();
        Autograd.Hooked hooked = Autograd.withSavedTensorHooks(piece)) {
      return body.apply(inputs.clone());
    } finally {
      piece.sealed = true;
      piece.releaseInputsWhenDone();
    }
  }

  /** The same for one tensor that becomes another. */
  public static Tensor checkpoint(UnaryOperator<Tensor> body, Tensor input) {
    return checkpointAll(x -> new Tensor[] {body.apply(x[0])}, input)[0];
  }

  /**
   * Has a module's forward computation recomputed from now on; its hooks run around it, once.
   *
   * @return ends it
   */
  @CanIgnoreReturnValue
  public static Module.Handle of(Module module) {
    return module.replaceForward(
        (inputs, forward) -> checkpointAll(x -> new Tensor[] {forward.apply(x)}, inputs)[0]);
  }

  // ---- forward ----

  @Override
  public Object pack(Tensor saved) {
    Slot slot = new Slot(slots.size(), saved);
    slots.add(slot);
    open++;
    return slot;
  }

  // ---- backward ----

  @Override
  public Tensor unpack(Object packed) {
    Slot slot = (Slot) packed;
    if (slot.value == null) {
      Autograd.noGrad(this::runAgain);
    }
    Tensor value = slot.value;
    if (value == null) {
      throw differs("saves fewer than " + (slot.index + 1) + " tensors");
    }
    checkVersion("a saved tensor", value, slot.valueVersion);
    return value;
  }

  @Override
  public void release(Object packed) {
    Slot slot = (Slot) packed;
    slot.released = true;
    if (slot.value != null) {
      release(slot.value);
      slot.value = null;
    }
    open--;
    releaseInputsWhenDone();
  }

  private void releaseInputsWhenDone() {
    if (sealed && open == 0) {
      inputs.forEach(Input::release);
      inputs.clear();
    }
  }

  private void runAgain() {
    Tensor[] again = new Tensor[inputs.size()];
    try (TensorScope scope = TensorScope.openWithoutWaiting()) {
      for (int i = 0; i < again.length; i++) {
        again[i] = inputs.get(i).again(i);
      }
      Refill refill = new Refill();
      boolean before = Autograd.setEnabled(true);
      try (Autocast precision = autocast == null ? Autocast.off() : Autocast.to(autocast);
          GeneratorTape.Open replay = random.replay();
          Autograd.Hooked hooked = Autograd.withSavedTensorHooks(refill)) {
        Tensor[] unused = body.apply(again);
      } finally {
        Autograd.setEnabled(before);
      }
      if (refill.next < slots.size()) {
        throw differs("saves " + refill.next + " tensors");
      }
    }
  }

  private IllegalStateException differs(String how) {
    return new IllegalStateException(
        "Recompute: the second run "
            + how
            + "; expected the "
            + slots.size()
            + " of the first. The computation must do the same each time it is run");
  }

  /** Takes what the second run saves, in the order of the first. */
  private final class Refill implements SavedTensorHooks {
    private int next;

    @Override
    public Object pack(Tensor saved) {
      if (next >= slots.size()) {
        throw differs("saves more tensors");
      }
      Slot slot = slots.get(next++);
      if (saved.dtype() != slot.dtype || !Arrays.equals(saved.shape(), slot.shape)) {
        throw differs(
            "saves "
                + saved.describe()
                + " where the first saved "
                + slot.dtype
                + Arrays.toString(slot.shape));
      }
      if (slot.leafVersion >= 0) {
        checkVersion("parameter", saved, slot.leafVersion);
      }
      if (!slot.released && slot.value == null) {
        slot.value = saved.detach();
        slot.valueVersion = saved.version();
        retain(saved);
      }
      return saved;
    }

    @Override
    public Tensor unpack(Object packed) {
      return (Tensor) packed;
    }

    @Override
    public void release(Object packed) {}
  }

  private static void checkVersion(String what, Tensor t, int expected) {
    if (t.version() != expected) {
      throw new IllegalStateException(
          "Recompute: "
              + what
              + " ("
              + t.describe()
              + ") was changed in place after a call had saved it: it is at version "
              + t.version()
              + ", expected "
              + expected);
    }
  }

  private static void retain(Tensor t) {
    for (Storage s : t.storages()) {
      Storage unused = s.retain();
    }
  }

  private static void release(Tensor t) {
    for (Storage s : t.storages()) {
      s.release();
    }
  }
}
