package dev.weft.c10d.host;

import java.util.Map;

/** How large the parts of a {@link SharedSegment} are, by measurement. Stateless. */
final class SharedSizes {
  static final String INLINE = "WEFT_SHM_INLINE";
  static final String CHUNK = "WEFT_SHM_CHUNK";

  static final String RING = "WEFT_SHM_RING";

  static final String HIERARCHICAL = "WEFT_HIERARCHICAL_BYTES";

  private static final int HIERARCHICAL_BYTES = 1 << 17;
  private static final int RING_BYTES = 1 << 18;
  private static final int INLINE_BYTES = 1 << 14;
  private static final int CHUNK_BYTES = 1 << 18;

  /** Many ranks have shorter chunks, as all are to be there at a time. */
  private static final int CHUNKS_BYTES = 1 << 24;

  /** Each rank has a part of a slot. */
  private static final int LEAST_PART = 64;

  private static final int LOCAL_RANKS = 64;

  private SharedSizes() {}

  /** Reads them all, so that a mistake is found before ranks rely on each other. */
  static void check(Map<String, String> environment) {
    SharedLayout unusedSlots = layout(2, environment);
    SharedLayout unusedRing = ring(environment);
    long unusedBytes = hierarchical(environment);
  }

  static SharedLayout layout(int ranks, Map<String, String> environment) {
    int chunk = value(environment, CHUNK, Math.min(CHUNK_BYTES, CHUNKS_BYTES / ranks), 1);
    return new SharedLayout(
        ranks, value(environment, INLINE, INLINE_BYTES, 0), Math.max(LEAST_PART * ranks, chunk));
  }

  /** For the messages of two ranks, one way. */
  static SharedLayout ring(Map<String, String> environment) {
    int bytes = value(environment, RING, RING_BYTES, SharedLayout.SLOTS * SharedLayout.PAGE);
    return new SharedLayout(2, 0, bytes / SharedLayout.SLOTS);
  }

  /** From how many bytes on an all-reduce goes inside hosts first; negative for never. */
  static long hierarchical(Map<String, String> environment) {
    String text = environment.get(HIERARCHICAL);
    return text != null && text.trim().equalsIgnoreCase("off")
        ? -1
        : value(environment, HIERARCHICAL, HIERARCHICAL_BYTES, 0);
  }

  /** For threads, which read each other's memory; slots hold addresses only. */
  static SharedLayout local(int ranks) {
    return new SharedLayout(ranks, INLINE_BYTES, Long.BYTES * ranks);
  }

  /** Whether so many threads share a segment: all look at the counters of all. */
  static boolean isForThreads(int ranks) {
    return ranks > 1 && ranks <= LOCAL_RANKS;
  }

  private static int value(Map<String, String> environment, String name, int otherwise, int least) {
    String text = environment.get(name);
    if (text == null || text.isBlank()) {
      return otherwise;
    }
    int most = 1 << 28;
    try {
      int value = Integer.parseInt(text.trim());
      if (value >= least && value <= most) {
        return value;
      }
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(
          name + " is '" + text + "'; expected a number of bytes", e);
    }
    throw new IllegalArgumentException(
        name + " is " + text.trim() + "; expected " + least + " to " + most + " bytes");
  }
}
