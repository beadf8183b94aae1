package dev.weft.tensor;

/**
 * A stream of random numbers given by a seed and a position, from the counter-based generator
 * Philox-4x32-10 (Salmon et al., SC 2011): a value depends on seed, position and the element's
 * index alone, not on threads or on how a tensor is split. Not thread-safe; each thread has its own
 * {@link #current}.
 */
public final class Generator {
  private static final ThreadLocal<Generator> CURRENT =
      ThreadLocal.withInitial(() -> new Generator(0));

  private long seed;
  private long offset;

  /** A stream from its beginning. */
  public Generator(long seed) {
    this.seed = seed;
  }

  /** The calling thread's default stream; its seed is 0 until it is set. */
  public static Generator current() {
    return CURRENT.get();
  }

  /** Starts a stream anew with a seed. */
  public Generator manualSeed(long seed) {
    this.seed = seed;
    this.offset = 0;
    return this;
  }

  /** The seed. */
  public long seed() {
    return seed;
  }

  /** The position, in blocks of 128 bits. */
  public long offset() {
    return offset;
  }

  /** Moves to a position, for resuming from a checkpoint. */
  public Generator offset(long offset) {
    this.offset = offset;
    return this;
  }

  /** Takes the numbers of {@code elements} elements; returns the position of the first. */
  public long take(long elements) {
    GeneratorTape.note(this);
    long at = offset;
    offset += (elements + 1) / 2;
    return at;
  }
}
