package dev.weft.parallel;

import dev.weft.tensor.autograd.Autograd;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * What the sharded modules of one model know of each other: in which order they ran, which is what
 * to gather ahead, and which reductions are under way.
 */
final class ShardingSchedule {
  // So many reductions hold their buffers while the next module's backward runs.
  private static final int REDUCTIONS = 1;

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

  /** The so many modules that ran after this in the forward before, nearest first. */
  List<FullySharded> next(FullySharded module, int count) {
    int at = current.size() - 1;
    if (at >= known.size() || known.get(at) != module) {
      return List.of();
    }
    return List.copyOf(known.subList(at + 1, Math.min(at + 1 + count, known.size())));
  }

  /**
   * The so many modules that ran before this in the last forward and have not been reached by
   * backward yet, nearest first.
   */
  List<FullySharded> previous(FullySharded module, int count) {
    List<FullySharded> before = new ArrayList<>();
    for (int at = current.lastIndexOf(module) - 1; at >= 0 && before.size() < count; at--) {
      if (backward.contains(current.get(at))) {
        break;
      }
      before.add(current.get(at));
    }
    return before;
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
