package dev.weft.examples.trainer;

/** A sequence of tokens that can be read anywhere. Immutable, any thread. */
public interface TokenSource {
  /** How many there are. */
  long size();

  /** Tokens are at least 0 and below this. */
  int vocab();

  /**
   * Copies tokens.
   *
   * @param from position of the first one
   * @param to gets them from position {@code at} on
   * @throws IllegalArgumentException if a token is not below {@link #vocab}
   */
  void read(long from, long[] to, int at, int count);

  /**
   * A part of this.
   *
   * @param from position of its first token
   * @param size how many
   */
  default TokenSource part(long from, long size) {
    if (from < 0 || size < 0 || from + size > size()) {
      throw new IllegalArgumentException(
          "part [%d, %d) of %d tokens; expected it inside".formatted(from, from + size, size()));
    }
    TokenSource all = this;
    return new TokenSource() {
      @Override
      public long size() {
        return size;
      }

      @Override
      public int vocab() {
        return all.vocab();
      }

      @Override
      public void read(long first, long[] to, int at, int count) {
        all.read(from + first, to, at, count);
      }
    };
  }
}
