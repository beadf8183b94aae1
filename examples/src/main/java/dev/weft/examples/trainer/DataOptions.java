package dev.weft.examples.trainer;

import dev.weft.examples.reference.TextBatches;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** What to train on. */
final class DataOptions {
  /** How a file becomes tokens. */
  enum Tokenizer {
    /** Bytes; 256 tokens. */
    BYTE,
    /** Characters of a UTF-8 text. */
    CHAR,
    /** Little-endian unsigned numbers of 2 bytes. */
    U16,
    /** Little-endian unsigned numbers of 4 bytes. */
    U32
  }

  /** In which order windows of the data are taken. */
  enum Order {
    /** Each window once an epoch. */
    SHUFFLED,
    /** Any position at any time. */
    RANDOM
  }

  @Option(
      names = "--data",
      paramLabel = "FILE",
      description = "a text or token file (default: the text that comes with the examples)")
  @Nullable Path file;

  @Option(
      names = "--tokenizer",
      paramLabel = "byte|char|u16|u32",
      description =
          "how the file becomes tokens; u16 and u32 are little-endian numbers without a header "
              + "(default: byte)")
  Tokenizer tokenizer = Tokenizer.BYTE;

  @Option(
      names = "--vocab",
      paramLabel = "N",
      description = "how many tokens there are; needed for u16 and u32")
  int vocab;

  @Option(
      names = "--seq",
      paramLabel = "N",
      description = "tokens of a sample (default: ${DEFAULT-VALUE})")
  int seq = 64;

  @Option(
      names = "--order",
      paramLabel = "shuffled|random",
      description =
          "shuffled: windows side by side, each once an epoch; random: any positions "
              + "(default: shuffled)")
  Order order = Order.SHUFFLED;

  @Option(
      names = "--held-out",
      paramLabel = "PART",
      description =
          "the part at the end that is evaluated on, 0 to 0.5 (default: ${DEFAULT-VALUE})")
  double heldOut = 0.1;

  @Option(
      names = "--seed",
      paramLabel = "N",
      description = "of initial parameters and of the order (default: ${DEFAULT-VALUE})")
  int seed = 20240602;

  /** The tokens of the file, or of the text that comes with the examples. */
  TokenSource tokens() {
    if (seq < 1) {
      throw new IllegalArgumentException("--seq " + seq + "; expected 1 or more");
    }
    if (!(heldOut >= 0 && heldOut <= 0.5)) {
      throw new IllegalArgumentException("--held-out " + heldOut + "; expected 0 to 0.5");
    }
    boolean numbers = tokenizer == Tokenizer.U16 || tokenizer == Tokenizer.U32;
    if (numbers != (vocab > 0)) {
      throw new IllegalArgumentException(
          "--vocab "
              + (vocab == 0 ? "is not given" : "is " + vocab)
              + " with --tokenizer "
              + name(tokenizer)
              + "; expected the number of tokens with u16 and u32, and nothing with byte and char");
    }
    Path path = file;
    if (path == null) {
      if (numbers) {
        throw new IllegalArgumentException(
            "--tokenizer " + name(tokenizer) + " without --data; expected a token file");
      }
      byte[] text = TextBatches.corpus();
      return tokenizer == Tokenizer.CHAR
          ? CharTokens.of(new String(text, StandardCharsets.UTF_8))
          : new ByteTokens(text);
    }
    if (!Files.isReadable(path) || Files.isDirectory(path)) {
      throw new IllegalArgumentException("--data '" + path + "' is not a readable file");
    }
    return switch (tokenizer) {
      case BYTE -> MappedTokens.of(path, 1, 256);
      case CHAR -> CharTokens.of(path);
      case U16 -> MappedTokens.of(path, 2, vocab);
      case U32 -> MappedTokens.of(path, 4, vocab);
    };
  }

  private static String name(Tokenizer t) {
    return t.name().toLowerCase(java.util.Locale.ROOT);
  }

  /** How many tokens at the end are held out. */
  long heldOutOf(TokenSource all) {
    return Math.round(all.size() * heldOut);
  }

  /** Samples of all but the held-out part. */
  TokenBatches training(TokenSource all) {
    TokenSource part = all.part(0, all.size() - heldOutOf(all));
    if (part.size() < seq + 2L) {
      throw new IllegalArgumentException(
          "--data has "
              + part.size()
              + " tokens to train on; expected at least "
              + (seq + 2L)
              + " for --seq "
              + seq);
    }
    Sampler sampler =
        order == Order.RANDOM
            ? Sampler.random(part.size(), seq, seed)
            : Sampler.shuffled(part.size(), seq, seed);
    return new TokenBatches(part, seq, sampler);
  }

  /**
   * The windows of the held-out part, in order.
   *
   * @param samples how many are wanted
   */
  TokenBatches evaluation(TokenSource all, long samples) {
    long size = heldOutOf(all);
    long windows = (size - 1) / seq;
    if (windows < samples) {
      throw new IllegalArgumentException(
          "--held-out "
              + heldOut
              + " leaves "
              + windows
              + " windows of "
              + seq
              + " tokens to evaluate on; expected the "
              + samples
              + " of --eval-batches times --batch");
    }
    return new TokenBatches(all.part(all.size() - size, size), seq, number -> number * seq);
  }
}
