package dev.weft.tensor.autograd;

import dev.weft.tensor.Tensor;
import java.util.ArrayDeque;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The leaves of one backward whose hooks run when the gradient is complete: how often each is used
 * in the graph, and how many of these uses are done.
 */
final class HookedLeaves {
  // In the order of the graph, so that ranks with equal graphs run hooks alike.
  private final Map<Tensor, Uses> byLeaf = new LinkedHashMap<>();

  private static final class Uses {
    int outstanding;
    boolean arrived;
  }

  private HookedLeaves() {}

  static @Nullable HookedLeaves of(List<Node.Edge> roots) {
    HookedLeaves leaves = new HookedLeaves();
    Set<Node> seen = new HashSet<>();
    ArrayDeque<Node> stack = new ArrayDeque<>();
    for (Node.Edge root : roots) {
      leaves.visit(root, seen, stack);
    }
    while (!stack.isEmpty()) {
      for (Node.Edge e : stack.pop().edges()) {
        leaves.visit(e, seen, stack);
      }
    }
    // A root that is a leaf has its whole share when backward starts; it waits for the others.
    for (Node.Edge root : roots) {
      leaves.done(root);
    }
    return leaves.byLeaf.isEmpty() ? null : leaves;
  }

  private void visit(Node.Edge e, Set<Node> seen, ArrayDeque<Node> stack) {
    Node node = e.node();
    Tensor leaf = e.leaf();
    if (node != null) {
      if (seen.add(node)) {
        stack.push(node);
      }
    } else if (leaf != null && leaf.autograd().hasPostAccumulateHooks()) {
      byLeaf.computeIfAbsent(leaf, l -> new Uses()).outstanding++;
    }
  }

  /** Notes a contribution. */
  void arrived(Tensor leaf) {
    Uses uses = byLeaf.get(leaf);
    if (uses != null) {
      uses.arrived = true;
    }
  }

  /** Notes that a node has given what it had. */
  void done(Node.Edge[] edges) {
    for (Node.Edge e : edges) {
      done(e);
    }
  }

  private void done(Node.Edge e) {
    Tensor leaf = e.leaf();
    Uses uses = leaf == null ? null : byLeaf.get(leaf);
    if (leaf != null && uses != null && --uses.outstanding == 0 && uses.arrived) {
      byLeaf.remove(leaf);
      leaf.autograd().runPostAccumulateHooks(leaf);
    }
  }

  /** Runs what is left: of leaves that no gradient has reached along some of their uses. */
  void finish() {
    for (Tensor leaf : List.copyOf(byLeaf.keySet())) {
      Uses uses = byLeaf.remove(leaf);
      if (uses != null && uses.arrived) {
        leaf.autograd().runPostAccumulateHooks(leaf);
      }
    }
  }
}
