package dev.weft.c10d;

import java.time.Duration;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/** Where a specification is run: on so many ranks, which may be more than the group it is given. */
interface OnRanks {
  /** What each rank of a group does. */
  interface Body {
    void run(int rank, ProcessGroup group) throws Exception;
  }

  /** Ranks that are threads. */
  static OnRanks by(Way way) {
    return (n, body) ->
        way.of(LocalWorld.of(n))
            .timeout(Duration.ofSeconds(20))
            .run(
                rank -> {
                  if (way == Way.SHM) {
                    Acquaintance.make(Distributed.world());
                  }
                  body.run(rank, Distributed.world());
                });
  }

  /** The ranks of a world, made anew for each body. */
  static OnRanks in(Supplier<LocalWorld> world) {
    return (n, body) ->
        world
            .get()
            .timeout(Duration.ofSeconds(20))
            .run(
                rank -> {
                  if (Distributed.worldSize() != n) {
                    throw new IllegalArgumentException("made for a world of " + n);
                  }
                  body.run(rank, Distributed.world());
                });
  }

  /** In the world that this process has joined: all of it, or a new group of its first ranks. */
  OnRanks PROCESSES =
      (n, body) -> {
        int rank = Distributed.rank();
        try {
          if (n == Distributed.worldSize()) {
            body.run(rank, Distributed.world());
            return;
          }
          ProcessGroup group = Distributed.newGroup(IntStream.range(0, n).toArray());
          if (group.isMember()) {
            body.run(rank, group);
            group.destroy();
          }
        } catch (RuntimeException | Error e) {
          throw e;
        } catch (Exception e) {
          throw new IllegalStateException(e);
        }
      };

  void run(int n, Body body);
}
