package dev.weft.bench;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.World;
import java.util.Arrays;
import java.util.List;

/** What a rank of {@link CollectiveRuns} runs in a process of its own. */
public final class CollectiveRank {
  private CollectiveRank() {}

  /**
   * Measures; rank 0 prints rows.
   *
   * @param args the implementation's name, then the sizes in bytes
   */
  public static void main(String[] args) {
    List<Long> sizes = Arrays.stream(args).skip(1).map(Long::valueOf).toList();
    try (World world = Distributed.init()) {
      Rows rows = world.rank() == 0 ? new Rows(args[0], System.out) : null;
      new CollectiveBenchmark(world.group(), rows).run(sizes);
    }
  }
}
