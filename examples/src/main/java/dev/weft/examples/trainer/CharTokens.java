package dev.weft.examples.trainer;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * The characters (code points) of a UTF-8 text, numbered in their order. All of the text is held in
 * memory.
 */
final class CharTokens implements TokenSource {
  // So that layers can be cut over ranks; the numbers beyond the last character never occur.
  private static final int MULTIPLE = 64;

  private final int[] tokens;
  private final int vocab;

  private CharTokens(int[] tokens, int vocab) {
    this.tokens = tokens;
    this.vocab = vocab;
  }

  /** Reads a file. */
  static CharTokens of(Path file) {
    try {
      return of(Files.readString(file));
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException(
          "--data '" + file + "' is no UTF-8 text; expected one for --tokenizer char", e);
    } catch (IOException e) {
      throw new UncheckedIOException("--data '" + file + "' cannot be read: " + e.getMessage(), e);
    }
  }

  static CharTokens of(String text) {
    int[] points = text.codePoints().toArray();
    int[] characters = Arrays.stream(points).sorted().distinct().toArray();
    for (int i = 0; i < points.length; i++) {
      points[i] = Arrays.binarySearch(characters, points[i]);
    }
    return new CharTokens(points, (characters.length + MULTIPLE - 1) / MULTIPLE * MULTIPLE);
  }

  @Override
  public long size() {
    return tokens.length;
  }

  @Override
  public int vocab() {
    return vocab;
  }

  @Override
  public void read(long from, long[] to, int at, int count) {
    for (int i = 0; i < count; i++) {
      to[at + i] = tokens[Math.toIntExact(from + i)];
    }
  }
}
