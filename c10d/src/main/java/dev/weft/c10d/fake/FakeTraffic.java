package dev.weft.c10d.fake;

import dev.weft.c10d.RankContext;
import dev.weft.tensor.StridedTensor;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What the {@code fake} backend was asked to do on one rank, over all of its groups. Bytes are
 * those that the rank hands in: its inputs, and the tensor of what works in place; a receive hands
 * in nothing. Thread-safe.
 */
public final class FakeTraffic implements AutoCloseable {
  private record Count(long calls, long bytes) {
    static final Count NONE = new Count(0, 0);

    Count plus(Count other) {
      return new Count(calls + other.calls, bytes + other.bytes);
    }
  }

  private final Map<String, Count> counts = new TreeMap<>();

  private FakeTraffic() {}

  /**
   * The calling rank's.
   *
   * @throws IllegalStateException if the calling thread is no rank
   */
  public static FakeTraffic current() {
    return of(RankContext.current());
  }

  static FakeTraffic of(RankContext rank) {
    return rank.resource(FakeTraffic.class, FakeTraffic::new);
  }

  synchronized void count(String operation, List<StridedTensor> handedIn) {
    long bytes = handedIn.stream().mapToLong(t -> t.numel() * t.dtype().byteSize()).sum();
    counts.merge(operation, new Count(1, bytes), Count::plus);
  }

  /** How many calls there were. */
  public synchronized long calls() {
    return counts.values().stream().mapToLong(Count::calls).sum();
  }

  /** How many calls of an operation, such as {@code all_reduce}. */
  public synchronized long calls(String operation) {
    return counts.getOrDefault(operation, Count.NONE).calls();
  }

  /** How many bytes were handed in. */
  public synchronized long bytes() {
    return counts.values().stream().mapToLong(Count::bytes).sum();
  }

  /** How many bytes were handed in to an operation. */
  public synchronized long bytes(String operation) {
    return counts.getOrDefault(operation, Count.NONE).bytes();
  }

  /** Starts to count anew. */
  public synchronized void reset() {
    counts.clear();
  }

  /** Has nothing to let go of. */
  @Override
  public void close() {}

  @Override
  public synchronized String toString() {
    StringBuilder text = new StringBuilder();
    counts.forEach(
        (operation, c) ->
            text.append(text.isEmpty() ? "" : "; ")
                .append(operation)
                .append(": ")
                .append(c.calls())
                .append(" calls, ")
                .append(c.bytes())
                .append(" B"));
    return text.toString();
  }
}
