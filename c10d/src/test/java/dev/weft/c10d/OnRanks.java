package dev.weft.c10d;

import java.time.Duration;
import java.util.stream.IntStream;

/** Where a specification is run: on so many ranks, which may be more than the group it is given. */
interface OnRanks {
  /** What each rank of a group does. */
  interface Body {
    void run(int rank, ProcessGroup group) throws Exception;
  }

  OnRanks THREADS = (n, body) -> onThreads(LocalWorld.of(n), body);
  OnRanks TCP = (n, body) -> onThreads(LocalWorld.of(n).overTcp(), body);

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

  private static void onThreads(LocalWorld world, Body body) {
    world.timeout(Duration.ofSeconds(20)).run(rank -> body.run(rank, Distributed.world()));
  }
}
