package dev.weft.examples.trainer;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;

/**
 * Tokens in a memory-mapped file of little-endian numbers of 1, 2 or 4 bytes without a header, of
 * any size. The operating system reads the pages that are used and shares them among ranks.
 */
final class MappedTokens implements TokenSource {
  // A mapping holds less than 2 GiB; a multiple of all widths.
  private static final long CHUNK = 1L << 30;

  private final String name;
  private final int width;
  private final int vocab;
  private final long size;
  private final List<ByteBuffer> chunks = new ArrayList<>();

  private MappedTokens(String name, int width, int vocab, long size) {
    this.name = name;
    this.width = width;
    this.vocab = vocab;
    this.size = size;
  }

  /**
   * Maps a file.
   *
   * @param width bytes of a token: 1, 2 or 4
   * @throws IllegalArgumentException if the length is no multiple of the width
   */
  static MappedTokens of(Path file, int width, int vocab) {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      long bytes = channel.size();
      if (bytes % width != 0) {
        throw new IllegalArgumentException(
            "--data '%s' has %d bytes; expected a multiple of the %d bytes of a token"
                .formatted(file, bytes, width));
      }
      MappedTokens tokens = new MappedTokens(file.toString(), width, vocab, bytes / width);
      for (long at = 0; at < bytes; at += CHUNK) {
        long length = Math.min(CHUNK, bytes - at);
        tokens.chunks.add(
            channel.map(FileChannel.MapMode.READ_ONLY, at, length).order(ByteOrder.LITTLE_ENDIAN));
      }
      return tokens;
    } catch (IOException e) {
      throw new UncheckedIOException("--data '" + file + "' cannot be read: " + e.getMessage(), e);
    }
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public int vocab() {
    return vocab;
  }

  @Override
  public void read(long from, long[] to, int at, int count) {
    if (from < 0 || from + count > size) {
      throw new IndexOutOfBoundsException(
          "tokens [%d, %d) of %d in %s".formatted(from, from + count, size, name));
    }
    for (int i = 0; i < count; i++) {
      long place = (from + i) * width;
      ByteBuffer chunk = chunks.get((int) (place / CHUNK));
      int in = (int) (place % CHUNK);
      long token =
          switch (width) {
            case 1 -> chunk.get(in) & 0xff;
            case 2 -> chunk.getShort(in) & 0xffff;
            default -> chunk.getInt(in) & 0xffff_ffffL;
          };
      if (token >= vocab) {
        throw new IllegalArgumentException(
            "--data '%s': token %d is %d; expected less than the vocabulary of %d"
                .formatted(name, from + i, token, vocab));
      }
      to[at + i] = token;
    }
  }
}
