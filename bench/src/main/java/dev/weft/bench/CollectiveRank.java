package dev.weft.bench;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.World;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What a rank of {@link CollectiveRuns} runs in a process of its own. */
public final class CollectiveRank {
  private CollectiveRank() {}

  static final String STRESS = "stress";

  /** How long a stress test may stand still. */
  static final Duration STALL = Duration.ofSeconds(60);

  /**
   * Measures, or tries; rank 0 prints what comes of it.
   *
   * @param args the implementation's name, seconds of warm-up, then the sizes in bytes; or {@code
   *     stress}, the implementation's name, and for how many seconds
   */
  public static void main(String[] args) {
    boolean stress = args[0].equals(STRESS);
    InitOptions options = stress ? InitOptions.DEFAULT.withTimeout(STALL) : InitOptions.DEFAULT;
    try (World world = Distributed.init(options)) {
      Rows rows = world.rank() == 0 ? new Rows(args[stress ? 1 : 0], System.out) : null;
      if (stress) {
        stress(world.group(), Double.parseDouble(args[2]), rows);
      } else {
        List<Long> sizes = Arrays.stream(args).skip(2).map(Long::valueOf).toList();
        new CollectiveBenchmark(world.group(), rows, Double.parseDouble(args[1])).run(sizes);
      }
    }
  }

  static void stress(ProcessGroup group, double seconds, @Nullable Rows rows) {
    long calls = new CollectiveStress(group, 17).run(seconds);
    if (rows != null) {
      rows.addValue("stress", (double) calls, "collectives", "n", group.size(), "seconds", seconds);
    }
  }
}
