package dev.weft.c10d.host;

import dev.weft.c10d.RankContext;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.util.HashMap;
import java.util.Map;

/** The segments of the groups of a world of threads, one for all members of each. Thread-safe. */
final class LocalSegments {
  private final Map<Long, Held> held = new HashMap<>();

  private static final class Held {
    final SharedLayout layout;
    final long address;
    int members;

    Held(SharedLayout layout) {
      this.layout = layout;
      this.address = HostMemory.allocate(layout.bytes());
      Memory.fill(address, layout.bytes(), (byte) 0);
    }
  }

  private LocalSegments() {}

  /** A member's segment; it is gone when all who have it have released it. */
  static SharedSegment of(RankContext context, HostGroup group) {
    return context
        .shared(LocalSegments.class, LocalSegments::new)
        .join(group.id(), SharedSizes.local(group.size()));
  }

  private synchronized SharedSegment join(long group, SharedLayout layout) {
    Held there = held.computeIfAbsent(group, g -> new Held(layout));
    there.members++;
    return new SharedSegment(there.layout, there.address, () -> leave(group));
  }

  private synchronized void leave(long group) {
    Held there = held.get(group);
    if (there != null && --there.members == 0) {
      held.remove(group);
      HostMemory.free(there.address, there.layout.bytes());
    }
  }
}
