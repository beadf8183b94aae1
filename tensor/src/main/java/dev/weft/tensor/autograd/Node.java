package dev.weft.tensor.autograd;

import dev.weft.tensor.DType;
import dev.weft.tensor.Storage;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Op;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/**
 * One recorded call: where its gradients go and what its formula needs. Made by the dispatcher, run
 * by the engine; not thread-safe.
 */
public final class Node implements Backward.Context {
  private static final AtomicLong SEQUENCE = new AtomicLong();

  private final Op op;
  private final Attrs attrs;
  // Later calls have larger numbers, so descending order is a topological order.
  private final long sequence = SEQUENCE.getAndIncrement();
  private final Edge[] edges;
  private final long[][] inputShapes;
  private final DType[] inputDTypes;
  private final int outputCount;
  private final Saved @Nullable [] savedInputs;
  private Saved @Nullable [] savedOutputs;
  private boolean released;
  @Nullable Object attachment;
  private @Nullable List<UnaryOperator<Tensor>> @Nullable [] outputHooks;
  // Set by the engine for one run.
  boolean @Nullable [] needed;

  /** Where an input's gradient goes: to a node's output, to a leaf, or nowhere. */
  record Edge(@Nullable Node node, int outputIndex, @Nullable Tensor leaf) {
    static final Edge NONE = new Edge(null, 0, null);

    static Edge of(Tensor t) {
      if (!t.requiresGrad()) {
        return NONE;
      }
      AutogradMeta meta = t.autograd();
      return meta.gradFn == null
          ? new Edge(null, 0, t)
          : new Edge(meta.gradFn, meta.outputIndex, null);
    }

    boolean isNone() {
      return node == null && leaf == null;
    }
  }

  private interface Saved {
    static Saved of(Tensor t) {
      SavedTensorHooks hooks = Autograd.savedTensorHooks();
      if (hooks != null) {
        return new Packed(hooks, hooks.pack(t));
      }
      for (Storage s : t.storages()) {
        s.retain();
      }
      return new Kept(t, t.version());
    }

    /** The tensor; {@code what} says for which message. */
    Tensor tensor(Supplier<String> what);

    void release();
  }

  private record Kept(Tensor tensor, int version) implements Saved {
    @Override
    public Tensor tensor(Supplier<String> what) {
      if (tensor.version() != version) {
        throw new IllegalStateException(
            "a tensor that "
                + what.get()
                + ", "
                + tensor.describe()
                + ") was changed in place: it is at version "
                + tensor.version()
                + ", expected "
                + version);
      }
      return tensor;
    }

    @Override
    public void release() {
      for (Storage s : tensor.storages()) {
        s.release();
      }
    }
  }

  private record Packed(SavedTensorHooks hooks, Object object) implements Saved {
    @Override
    public Tensor tensor(Supplier<String> what) {
      return hooks.unpack(object);
    }

    @Override
    public void release() {
      hooks.release(object);
    }
  }

  Node(Op op, Attrs attrs, Tensor[] inputs, Tensor[] outputs, boolean overwritesInput) {
    this.op = op;
    this.attrs = attrs;
    this.outputCount = outputs.length;
    this.edges = new Edge[inputs.length];
    this.inputShapes = new long[inputs.length][];
    this.inputDTypes = new DType[inputs.length];
    for (int i = 0; i < inputs.length; i++) {
      edges[i] = Edge.of(inputs[i]);
      inputShapes[i] = inputs[i].shape();
      inputDTypes[i] = inputs[i].dtype();
    }
    this.savedInputs = op.saves().inputs() ? new Saved[inputs.length] : null;
    if (savedInputs != null) {
      for (int i = overwritesInput ? 1 : 0; i < inputs.length; i++) {
        savedInputs[i] = Saved.of(inputs[i]);
      }
    }
  }

  /** Keeps the outputs; called once they carry this node, so that their history is right. */
  void saveOutputs(Tensor[] outputs) {
    if (op.saves().outputs()) {
      savedOutputs = new Saved[outputs.length];
      for (int i = 0; i < outputs.length; i++) {
        savedOutputs[i] = Saved.of(outputs[i]);
      }
    }
  }

  /** The operator that was called. */
  public Op op() {
    return op;
  }

  long sequence() {
    return sequence;
  }

  Edge[] edges() {
    return edges;
  }

  int outputCount() {
    return outputCount;
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  void addHook(int output, UnaryOperator<Tensor> hook) {
    if (outputHooks == null) {
      outputHooks = new List[outputCount];
    }
    List<UnaryOperator<Tensor>> list = outputHooks[output];
    if (list == null) {
      list = new ArrayList<>();
      outputHooks[output] = list;
    }
    list.add(hook);
  }

  Tensor runOutputHooks(int output, Tensor gradient) {
    List<UnaryOperator<Tensor>> list = outputHooks == null ? null : outputHooks[output];
    return list == null ? gradient : runHooks(list, gradient);
  }

  static Tensor runHooks(List<UnaryOperator<Tensor>> hooks, Tensor gradient) {
    Tensor g = gradient;
    for (UnaryOperator<Tensor> hook : List.copyOf(hooks)) {
      g = hook.apply(g);
    }
    return g;
  }

  /** Lets the saved tensors go. */
  void release() {
    if (released) {
      return;
    }
    released = true;
    for (Saved[] list : new Saved[][] {savedInputs, savedOutputs}) {
      if (list != null) {
        for (int i = 0; i < list.length; i++) {
          if (list[i] != null) {
            list[i].release();
          }
        }
      }
    }
    attachment = null;
  }

  boolean isReleased() {
    return released;
  }

  @Override
  public Tensor input(int i) {
    return unpack(savedInputs, i, "input");
  }

  @Override
  public Tensor output(int i) {
    return unpack(savedOutputs, i, "output");
  }

  private Tensor unpack(Saved @Nullable [] list, int i, String what) {
    if (released) {
      throw new IllegalStateException(
          "the graph of '"
              + op
              + "' was used by an earlier backward() and its saved tensors are gone; pass"
              + " retainGraph=true to run backward twice");
    }
    if (list == null || list[i] == null) {
      throw new IllegalStateException("operator '" + op + "' does not save its " + what + " " + i);
    }
    return list[i].tensor(() -> "'" + op + "' needs for its gradient (" + what + " " + i);
  }

  @Override
  public int inputCount() {
    return edges.length;
  }

  @Override
  public boolean needs(int input) {
    return needed != null ? needed[input] : !edges[input].isNone();
  }

  @Override
  public long[] inputShape(int i) {
    return inputShapes[i];
  }

  @Override
  public DType inputDType(int i) {
    return inputDTypes[i];
  }

  @Override
  public Attrs attrs() {
    return attrs;
  }

  @Override
  public @Nullable Object attachment() {
    return attachment;
  }

  @Override
  public String toString() {
    return op + "#" + sequence;
  }
}
