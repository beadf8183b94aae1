package dev.weft.tensor.autograd;

import dev.weft.tensor.Tensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A backward whose second pass is outstanding: the gradients of the inputs, and what is left to do
 * for the weights. Made by {@link Autograd#backwardInputs}; used by the thread that made it. Holds
 * the tensors that the second pass needs until {@link #finish} or {@link #close}.
 *
 * <p>Each call of the graph whose backward leads to an input and to a weight has its formula run
 * twice, each time for a part of its inputs. What leads to no input (a cast of a weight, say) runs
 * in the second pass only. The split of backward into these two is from Qi et al., "Zero Bubble
 * Pipeline Parallelism", 2023.
 */
public final class SplitBackward implements AutoCloseable {
  private final Map<Node, Rest> rests = new LinkedHashMap<>();
  private final List<Leaf> leaves = new ArrayList<>();
  private final List<Runnable> resumed = new ArrayList<>();
  private List<@Nullable Tensor> inputGradients = List.of();
  private boolean done;

  /** The inputs of a call whose gradients are outstanding, and what they are made from. */
  private record Rest(boolean[] inputs, @Nullable Tensor[] gradOutputs) {}

  /** A root that is a leaf. */
  private record Leaf(Tensor leaf, Tensor gradient) {}

  SplitBackward() {}

  /** One for each input, null where nothing flowed; the scope of the first pass owns them. */
  public List<@Nullable Tensor> inputGradients() {
    return inputGradients;
  }

  void inputGradients(List<@Nullable Tensor> gradients) {
    inputGradients = gradients;
  }

  /** Runs the second pass: the gradients of all other leaves are accumulated. To be called once. */
  public void finish() {
    if (done) {
      throw new IllegalStateException(
          "SplitBackward: the second pass has run already, or was given up by close()");
    }
    done = true;
    new Engine(false, null).runSecond(this);
  }

  /** Gives the second pass up, if it has not run. */
  @Override
  public void close() {
    if (done) {
      return;
    }
    done = true;
    for (Map.Entry<Node, Rest> e : rests.entrySet()) {
      for (Tensor g : e.getValue().gradOutputs) {
        if (g != null) {
          Engine.release(g);
        }
      }
      e.getKey().release();
    }
    leaves.forEach(l -> Engine.release(l.gradient));
  }

  // ---- for the engine ----

  /** Keeps what a call has to do besides {@code done}; false where that is nothing. */
  boolean leave(Node node, boolean[] done, @Nullable Tensor[] gradOutputs) {
    boolean[] left = new boolean[done.length];
    boolean any = false;
    for (int i = 0; i < left.length; i++) {
      left[i] = !done[i] && !node.edges()[i].isNone();
      any |= left[i];
    }
    if (any) {
      for (Tensor g : gradOutputs) {
        if (g != null) {
          Engine.retain(g);
        }
      }
      rests.put(node, new Rest(left, gradOutputs.clone()));
    }
    return any;
  }

  /** Keeps the gradient of a root that is a leaf. */
  void leave(Tensor leaf, Tensor gradient) {
    Engine.retain(gradient);
    leaves.add(new Leaf(leaf, gradient));
  }

  /** Which inputs of a call the second pass runs for; null for all, and in the first pass. */
  boolean @Nullable [] left(Node node) {
    Rest rest = done ? rests.get(node) : null;
    return rest == null ? null : rest.inputs;
  }

  void whenResumed(Runnable callback) {
    resumed.add(callback);
  }

  void resume() {
    resumed.forEach(Runnable::run);
  }

  List<Node.Edge> edges() {
    List<Node.Edge> edges = new ArrayList<>();
    rests.keySet().forEach(n -> edges.add(new Node.Edge(n, 0, null)));
    leaves.forEach(l -> edges.add(Node.Edge.of(l.leaf)));
    return edges;
  }

  void each(BiConsumer<Node, @Nullable Tensor[]> action) {
    rests.forEach((node, rest) -> action.accept(node, rest.gradOutputs));
  }

  void eachLeaf(BiConsumer<Tensor, Tensor> action) {
    leaves.forEach(
        l -> {
          action.accept(l.leaf, l.gradient);
          Engine.release(l.gradient);
        });
  }
}
