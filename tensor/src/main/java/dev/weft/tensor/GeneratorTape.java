package dev.weft.tensor;

import java.util.IdentityHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Where each generator stood when a piece of a computation first took numbers from it, so that the
 * piece can be run again with the same numbers. Covers every generator that the piece uses, be it a
 * default stream or not. Belongs to the thread that recorded it.
 */
public final class GeneratorTape {
  private static final ThreadLocal<@Nullable GeneratorTape> CURRENT = new ThreadLocal<>();

  private record Position(long seed, long offset) {
    static Position of(Generator g) {
      return new Position(g.seed(), g.offset());
    }

    void set(Generator g) {
      Generator unused = g.manualSeed(seed).offset(offset);
    }
  }

  private final IdentityHashMap<Generator, Position> first = new IdentityHashMap<>();
  private @Nullable GeneratorTape outer;

  /** An empty one. */
  public GeneratorTape() {}

  /** Ends {@link #record} or {@link #replay}. */
  public interface Open extends AutoCloseable {
    @Override
    void close();
  }

  /** Notes, until it is closed, what this thread takes; recordings nest. */
  public Open record() {
    outer = CURRENT.get();
    CURRENT.set(this);
    return () -> CURRENT.set(outer);
  }

  /** Puts generators where they stood; closing puts them back to where they are now. */
  public Open replay() {
    IdentityHashMap<Generator, Position> now = new IdentityHashMap<>();
    first.forEach(
        (g, position) -> {
          now.put(g, Position.of(g));
          position.set(g);
        });
    return () -> now.forEach((g, position) -> position.set(g));
  }

  /** Called by a generator before it gives numbers. */
  static void note(Generator g) {
    for (GeneratorTape t = CURRENT.get(); t != null; t = t.outer) {
      Position unused = t.first.computeIfAbsent(g, Position::of);
    }
  }
}
