package dev.weft.examples.trainer;

/** The bytes of a text in memory. */
final class ByteTokens implements TokenSource {
  private final byte[] text;

  ByteTokens(byte[] text) {
    this.text = text;
  }

  @Override
  public long size() {
    return text.length;
  }

  @Override
  public int vocab() {
    return 256;
  }

  @Override
  public void read(long from, long[] to, int at, int count) {
    for (int i = 0; i < count; i++) {
      to[at + i] = text[Math.toIntExact(from + i)] & 0xff;
    }
  }
}
