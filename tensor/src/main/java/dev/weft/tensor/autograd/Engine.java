package dev.weft.tensor.autograd;

import dev.weft.tensor.Storage;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Pointwise;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * One run of backward, on the calling thread. Nodes run in descending order of their sequence
 * numbers, which is a reverse topological order. Each node runs in a scope of its own, so that
 * temporaries of its formula are gone when it is done; a gradient lives until its node has used it.
 */
final class Engine {
  private static final ThreadLocal<@Nullable Engine> CURRENT = new ThreadLocal<>();

  private final boolean retainGraph;
  private final @Nullable List<Tensor> wanted;
  private final Map<Node, @Nullable Tensor[]> buffers = new HashMap<>();
  private final PriorityQueue<Node> ready =
      new PriorityQueue<>(Comparator.comparingLong(Node::sequence).reversed());
  // Results for the wanted tensors, by (node, output) or leaf.
  private final @Nullable Tensor[] found;
  private @Nullable Set<Node> useful;
  private final List<Runnable> callbacks = new ArrayList<>();
  // Of a backward in two passes: what the first leaves for the second, else null.
  private @Nullable SplitBackward split;
  // Leaves with hooks that wait for the last contribution; null where no leaf has any.
  private @Nullable HookedLeaves hookedLeaves;

  Engine(boolean retainGraph, @Nullable List<Tensor> wanted) {
    this.retainGraph = retainGraph;
    this.wanted = wanted;
    this.found = new Tensor[wanted == null ? 0 : wanted.size()];
  }

  /** The first pass of two, to the wanted tensors; what it leaves goes into {@code rest}. */
  List<@Nullable Tensor> runFirst(
      List<Tensor> roots, List<? extends @Nullable Tensor> gradients, SplitBackward rest) {
    split = rest;
    return run(roots, gradients);
  }

  /** The second pass, to all leaves that the first has left. */
  void runSecond(SplitBackward first) {
    split = first;
    List<@Nullable Tensor> unused =
        run(
            first.edges(),
            () -> {
              first.resume();
              first.each(
                  (node, gradOutputs) -> {
                    buffers.put(node, gradOutputs);
                    ready.add(node);
                  });
              try (TensorScope scope = TensorScope.openWithoutWaiting()) {
                first.eachLeaf((leaf, g) -> deliver(scope, Node.Edge.of(leaf), g, 2));
              }
            });
  }

  List<@Nullable Tensor> run(List<Tensor> roots, List<? extends @Nullable Tensor> gradients) {
    if (wanted != null) {
      useful = usefulNodes(roots);
    }
    return run(
        roots.stream().map(Node.Edge::of).toList(),
        () -> {
          try (TensorScope scope = TensorScope.openWithoutWaiting()) {
            for (int i = 0; i < roots.size(); i++) {
              seed(scope, roots.get(i), gradients.get(i));
            }
          }
        });
  }

  private List<@Nullable Tensor> run(List<Node.Edge> roots, Runnable start) {
    boolean before = Autograd.setEnabled(false);
    Engine outer = CURRENT.get();
    CURRENT.set(this);
    try {
      if (wanted == null && AutogradMeta.anyPostAccumulateHook()) {
        hookedLeaves = HookedLeaves.of(roots);
      }
      start.run();
      while (!ready.isEmpty()) {
        Node node = ready.remove();
        step(node);
        if (hookedLeaves != null) {
          hookedLeaves.done(node.edges());
        }
      }
      if (hookedLeaves != null) {
        hookedLeaves.finish();
      }
      for (Runnable callback : callbacks) {
        callback.run();
      }
      return handOver();
    } finally {
      CURRENT.set(outer);
      Autograd.setEnabled(before);
      // Only after a failure is anything left.
      for (@Nullable Tensor[] rest : buffers.values()) {
        for (Tensor t : rest) {
          if (t != null) {
            release(t);
          }
        }
      }
    }
  }

  static boolean isRunning() {
    return CURRENT.get() != null;
  }

  static boolean isInputPass() {
    Engine engine = CURRENT.get();
    return engine != null && engine.split != null && engine.wanted != null;
  }

  /** Runs something when this thread's backward has reached all leaves. */
  static void whenDone(Runnable callback) {
    Engine engine = CURRENT.get();
    if (engine == null) {
      throw new IllegalStateException("afterBackward: no backward is running on this thread");
    }
    engine.callbacks.add(callback);
  }

  /** Runs something when the second pass of this thread's backward starts, if there is one. */
  static void whenResumed(Runnable callback) {
    Engine engine = CURRENT.get();
    if (engine == null) {
      throw new IllegalStateException("beforeWeights: no backward is running on this thread");
    }
    if (engine.split != null && engine.wanted != null) {
      engine.split.whenResumed(callback);
    }
  }

  private void seed(TensorScope scope, Tensor root, @Nullable Tensor gradient) {
    if (!root.requiresGrad()) {
      throw new IllegalStateException(
          "backward: the tensor (" + root.describe() + ") does not require a gradient");
    }
    Tensor g = gradient;
    if (g == null) {
      if (root.numel() != 1) {
        throw new IllegalArgumentException(
            "backward without a gradient needs a tensor of one element; got " + root.describe());
      }
      g = Creation.fullLike(root, 1);
    } else if (!Arrays.equals(g.shape(), root.shape())) {
      throw new IllegalArgumentException(
          "gradient has " + g.describe() + "; expected the shape of " + root.describe());
    }
    deliver(scope, Node.Edge.of(root), g, 1);
  }

  private void step(Node node) {
    @Nullable Tensor[] gradOutputs = buffers.remove(node);
    if (gradOutputs == null) {
      return;
    }
    Node.Edge[] edges = node.edges();
    boolean[] left = split == null ? null : split.left(node);
    boolean resumed = left != null;
    boolean[] needed = left != null ? left : new boolean[edges.length];
    boolean any = resumed;
    for (int i = 0; i < edges.length && !resumed; i++) {
      needed[i] = isUseful(edges[i]);
      any |= needed[i];
    }
    boolean rest = false;
    try (TensorScope scope = TensorScope.openWithoutWaiting()) {
      // In a second pass the hooks have run before.
      for (int i = 0; i < gradOutputs.length && !resumed; i++) {
        Tensor g = gradOutputs[i];
        if (g != null) {
          Tensor hooked = node.runOutputHooks(i, g);
          if (hooked != g) {
            retain(hooked);
            release(g);
            gradOutputs[i] = hooked;
          }
          takeWanted(node, i, gradOutputs[i]);
        }
      }
      if (split != null && wanted != null) {
        rest = split.leave(node, needed, gradOutputs);
      }
      if (any) {
        node.needed = needed;
        Backward formula = java.util.Objects.requireNonNull(node.op().backward());
        @Nullable Tensor[] results = formula.apply(node, gradOutputs);
        node.needed = null;
        check(node, results, edges.length);
        for (int i = 0; i < edges.length; i++) {
          Tensor g = results[i];
          if (needed[i] && g != null) {
            deliver(scope, edges[i], cast(node, i, g), uses(results, needed, g));
          }
        }
      }
    } finally {
      for (Tensor g : gradOutputs) {
        if (g != null) {
          release(g);
        }
      }
    }
    if (!retainGraph && !rest) {
      node.release();
    }
  }

  private static Tensor cast(Node node, int i, Tensor g) {
    if (!Arrays.equals(g.shape(), node.inputShape(i))) {
      throw new IllegalStateException(
          "the backward formula of '"
              + node.op()
              + "' gave "
              + g.describe()
              + " for input "
              + i
              + " of shape "
              + Arrays.toString(node.inputShape(i)));
    }
    return g.dtype() == node.inputDType(i) ? g : Casts.to(g, node.inputDType(i));
  }

  private static void check(Node node, @Nullable Tensor[] results, int expected) {
    if (results.length != expected) {
      throw new IllegalStateException(
          "the backward formula of '"
              + node.op()
              + "' gave "
              + results.length
              + " gradients for "
              + expected
              + " inputs");
    }
  }

  /** How many of the results lie on the storages of one of them. */
  private static int uses(@Nullable Tensor[] results, boolean[] needed, Tensor one) {
    int n = 0;
    for (int i = 0; i < results.length; i++) {
      Tensor t = results[i];
      if (needed[i] && t != null && t.storages().get(0) == one.storages().get(0)) {
        n++;
      }
    }
    return n;
  }

  private void deliver(TensorScope scope, Node.Edge edge, Tensor gradient, int uses) {
    Node node = edge.node();
    if (node != null) {
      @Nullable Tensor[] slots = buffers.get(node);
      if (slots == null) {
        slots = new Tensor[node.outputCount()];
        buffers.put(node, slots);
        ready.add(node);
      }
      Tensor before = slots[edge.outputIndex()];
      Tensor sum = before == null ? gradient : Pointwise.add(before, gradient);
      retain(sum);
      slots[edge.outputIndex()] = sum;
      if (before != null) {
        release(before);
      }
    } else if (edge.leaf() != null) {
      Tensor leaf = edge.leaf();
      if (split != null && wanted != null && !wanted.contains(leaf)) {
        split.leave(leaf, gradient); // a root
        return;
      }
      Tensor hooked = leaf.autograd().runHooks(gradient);
      if (wanted != null) {
        accumulateWanted(leaf, hooked);
      } else {
        accumulate(scope, leaf, hooked, hooked == gradient ? uses : 2);
      }
    }
  }

  private void accumulate(TensorScope scope, Tensor leaf, Tensor gradient, int uses) {
    AutogradMeta meta = leaf.autograd();
    Tensor before = meta.grad;
    if (before != null) {
      if (before.kind() == null && gradient.kind() == null && before.dtype() == gradient.dtype()) {
        Pointwise.addInPlace(before, gradient);
      } else {
        adopt(scope, leaf, Pointwise.add(before, gradient), 1);
      }
    } else {
      adopt(scope, leaf, gradient, uses);
    }
    if (hookedLeaves != null) {
      hookedLeaves.arrived(leaf);
    }
  }

  /** Makes a gradient the leaf's own: as it is where nothing else uses it, else a copy. */
  private static void adopt(TensorScope scope, Tensor leaf, Tensor gradient, int uses) {
    Tensor own = uses == 1 && gradient.isWholeStorageOf(scope) ? gradient : null;
    if (own == null) {
      own = gradient.ownedCopy();
    } else {
      own.disown();
    }
    boolean scoped = own.giveToOwnerOf(leaf);
    leaf.autograd().setGrad(own, !scoped);
  }

  // ---- Autograd.grad: only what leads to the wanted tensors ----

  private void takeWanted(Node node, int output, @Nullable Tensor gradient) {
    if (wanted == null || gradient == null) {
      return;
    }
    for (int i = 0; i < wanted.size(); i++) {
      AutogradMeta meta = wanted.get(i).autograd();
      if (meta.gradFn == node && meta.outputIndex == output && found[i] == null) {
        retain(gradient);
        found[i] = gradient;
      }
    }
  }

  private void accumulateWanted(Tensor leaf, Tensor gradient) {
    for (int i = 0; i < found.length; i++) {
      if (wanted != null && wanted.get(i) == leaf) {
        Tensor before = found[i];
        Tensor sum = before == null ? gradient : Pointwise.add(before, gradient);
        retain(sum);
        found[i] = sum;
        if (before != null) {
          release(before);
        }
      }
    }
  }

  /** Gives the results to the caller's scope. */
  private List<@Nullable Tensor> handOver() {
    List<@Nullable Tensor> results = new ArrayList<>();
    for (Tensor t : found) {
      if (t != null) {
        t.giveToCurrentScope();
      }
      results.add(t);
    }
    return results;
  }

  private boolean isUseful(Node.Edge edge) {
    if (edge.isNone()) {
      return false;
    }
    if (wanted == null) {
      return true;
    }
    return edge.leaf() != null
        ? wanted.contains(edge.leaf())
        : useful != null && useful.contains(edge.node());
  }

  /** Nodes from which a wanted tensor can be reached, or whose output is one. */
  private Set<Node> usefulNodes(List<Tensor> roots) {
    Set<Node> all = new HashSet<>();
    List<Node> ordered = new ArrayList<>();
    ArrayDeque<Node> stack = new ArrayDeque<>();
    for (Tensor root : roots) {
      Node n = root.autograd().gradFn;
      if (n != null && all.add(n)) {
        stack.push(n);
      }
    }
    while (!stack.isEmpty()) {
      Node n = stack.pop();
      ordered.add(n);
      for (Node.Edge e : n.edges()) {
        if (e.node() != null && all.add(e.node())) {
          stack.push(e.node());
        }
      }
    }
    ordered.sort(Comparator.comparingLong(Node::sequence));
    Set<Object> targets = java.util.Collections.newSetFromMap(new IdentityHashMap<>());
    if (wanted != null) {
      for (Tensor t : wanted) {
        Node n = t.autograd().gradFn;
        targets.add(n == null ? t : n);
      }
    }
    Set<Node> result = new HashSet<>();
    for (Node n : ordered) {
      boolean good = targets.contains(n);
      for (Node.Edge e : n.edges()) {
        good |= e.node() != null && result.contains(e.node());
        good |= e.leaf() != null && targets.contains(e.leaf());
      }
      if (good) {
        result.add(n);
      }
    }
    return result;
  }

  static void retain(Tensor t) {
    for (Storage s : t.storages()) {
      s.retain();
    }
  }

  static void release(Tensor t) {
    for (Storage s : t.storages()) {
      s.release();
    }
  }
}
