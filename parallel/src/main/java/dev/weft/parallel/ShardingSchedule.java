package dev.weft.parallel;

import dev.weft.tensor.autograd.Autograd;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What the sharded modules of one model know of each other: in which order they ran, which is what
 * to gather ahead, and which reductions are under way.
 */
final class ShardingSchedule {
  // So many reductions hold their buffers at a time.
  private static final int REDUCTIONS = 2;

  private final FullySharded root;
  // The order of the forward before, and of the one that runs.
  private List<FullySharded> known = new ArrayList<>();
  private List<FullySharded> current = new ArrayList<>();
  private final List<FullySharded> backward = new ArrayList<>();
  private final Deque<FullySharded> reductions = new ArrayDeque<>();

  ShardingSchedule(FullySharded root) {
    this.root = root;
  }

  void forward(FullySharded module) {
    if (module == root) {
      known = current;
      current = new ArrayList<>();
    }
    current.add(module);
  }

  /** What ran after this in the forward before. */
  @Nullable FullySharded next(FullySharded module) {
    int at = current.size() - 1;
    return at + 1 < known.size() && known.get(at) == module ? known.get(at + 1) : null;
  }

  /** What ran before this in the last forward and has not been reached by backward yet. */
  @Nullable FullySharded previous(FullySharded module) {
    int at = current.lastIndexOf(module);
    FullySharded before = at > 0 ? current.get(at - 1) : null;
    return before == null || backward.contains(before) ? null : before;
  }

  void backward(FullySharded module) {
    if (backward.isEmpty()) {
      Autograd.afterBackward(this::finish);
    }
    backward.add(module);
  }

  void reducing(FullySharded module) {
    if (reductions.size() >= REDUCTIONS) {
      reductions.remove().finishReduction();
    }
    reductions.add(module);
  }

  private void finish() {
    List<FullySharded> reached = List.copyOf(backward);
    backward.clear();
    for (FullySharded m : reached) {
      m.afterBackward();
    }
    while (!reductions.isEmpty()) {
      reductions.remove().finishReduction();
    }
    // What was gathered ahead and not wanted.
    for (FullySharded m : current) {
      m.dropPrefetched();
    }
  }
}
