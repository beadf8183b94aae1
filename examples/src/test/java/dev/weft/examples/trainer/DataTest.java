package dev.weft.examples.trainer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DataTest {
  @TempDir private Path folder;

  private static long[] read(TokenSource tokens, long from, int count) {
    long[] out = new long[count];
    tokens.read(from, out, 0, count);
    return out;
  }

  private static DataOptions options(String... arguments) {
    return TrainOptions.parse(arguments).data;
  }

  private Path file(byte[] bytes) throws IOException {
    return Files.write(folder.resolve("tokens"), bytes);
  }

  @Test
  void tokenFilesAreLittleEndianAndUnsigned() throws IOException {
    ByteBuffer b = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    b.putShort((short) 1).putShort((short) 0xfffe).putShort((short) 7).putShort((short) 0x8000);
    Path path = file(b.array());
    TokenSource two = MappedTokens.of(path, 2, 65_536);
    assertThat(two.size()).isEqualTo(4);
    assertThat(read(two, 0, 4)).containsExactly(1, 65_534, 7, 32_768);
    assertThat(read(two.part(1, 3), 1, 2)).containsExactly(7, 32_768);
    assertThat(read(MappedTokens.of(path, 4, Integer.MAX_VALUE).part(0, 0), 0, 0)).isEmpty();
    TokenSource small = MappedTokens.of(path, 2, 100);
    assertThatThrownBy(() -> read(small, 0, 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "--data '%s': token 1 is 65534; expected less than the vocabulary of 100", path);
    assertThatThrownBy(() -> read(two, 2, 3)).isInstanceOf(IndexOutOfBoundsException.class);
    assertThatThrownBy(() -> two.part(2, 3)).hasMessageContaining("[2, 5) of 4 tokens");
  }

  @Test
  void charactersAreNumberedInOrder() {
    TokenSource text = CharTokens.of("b\u00e4a\ud83d\ude00b");
    assertThat(read(text, 0, 5)).containsExactly(1, 2, 0, 3, 1); // a, b, a-umlaut, a smile
    assertThat(text.vocab()).isEqualTo(64);
    assertThat(CharTokens.of(printable()).vocab()).isEqualTo(128);
  }

  private static String printable() {
    StringBuilder all = new StringBuilder();
    for (char c = ' '; c <= '~'; c++) {
      all.append(c);
    }
    return all.toString();
  }

  /** Every window once an epoch, in another order each time. */
  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 5, 64, 100, 1000})
  void anEpochHasEachWindowOnce(long windows) {
    int seq = 7;
    Sampler sampler = Sampler.shuffled(windows * seq + 1, seq, 11);
    List<List<Long>> epochs = new ArrayList<>();
    for (int epoch = 0; epoch < 3; epoch++) {
      long first = epoch * windows;
      epochs.add(LongStream.range(first, first + windows).mapToObj(sampler::start).toList());
      assertThat(epochs.get(epoch))
          .containsExactlyInAnyOrderElementsOf(
              LongStream.range(0, windows).mapToObj(w -> w * seq).toList());
    }
    if (windows >= 64) {
      assertThat(epochs.get(0)).isNotEqualTo(epochs.get(1));
      assertThat(epochs.get(0)).isNotEqualTo(epochs.get(0).stream().sorted().toList());
    }
  }

  /** No window ever reaches into the held-out part, and evaluation has nothing else. */
  @ParameterizedTest
  @CsvSource({"shuffled", "random"})
  void theHeldOutPartIsNeverTrainedOn(String order) throws IOException {
    byte[] bytes = new byte[1000];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) (i < 900 ? 1 : 2);
    }
    DataOptions data = options("--data", file(bytes).toString(), "--order", order, "--seq", "9");
    TokenSource all = data.tokens();
    TokenBatches.Batch training = data.training(all).rows(0, 500);
    assertThat(training.inputs().toLongArray()).containsOnly(1);
    assertThat(training.targets().toLongArray()).containsOnly(1);
    TokenBatches.Batch heldOut = data.evaluation(all, 11).rows(0, 11);
    assertThat(heldOut.inputs().toLongArray()).containsOnly(2);
    assertThat(heldOut.targets().toLongArray()).containsOnly(2);
    assertThatThrownBy(() -> data.evaluation(all, 12))
        .hasMessageContaining("--held-out 0.1 leaves 11 windows")
        .hasMessageContaining("expected the 12 of --eval-batches times --batch");
  }

  /** Ranks that deal out the rows have together what one rank has alone. */
  @Test
  void theRowsOfRanksAreTheBatch() {
    DataOptions data = options("--seq", "8");
    TokenBatches batches = data.training(data.tokens());
    TokenBatches.Batch whole = batches.rows(24, 8);
    List<Long> dealt = new ArrayList<>();
    for (int replica = 0; replica < 4; replica++) {
      for (long token : batches.rows(24 + replica * 2L, 2).targets().toLongArray()) {
        dealt.add(token);
      }
    }
    assertThat(dealt.stream().mapToLong(Long::longValue)).containsExactly(boxed(whole));
    Set<Long> starts = new HashSet<>();
    Sampler sampler = Sampler.shuffled(100_000, 8, 1);
    for (long n = 0; n < 1000; n++) {
      starts.add(sampler.start(n));
    }
    assertThat(starts).hasSize(1000);
  }

  private static Long[] boxed(TokenBatches.Batch batch) {
    return LongStream.of(batch.targets().toLongArray()).boxed().toArray(Long[]::new);
  }
}
