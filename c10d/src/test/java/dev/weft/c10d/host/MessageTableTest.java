package dev.weft.c10d.host;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The table of docs/backends.md. */
class MessageTableTest {
  @ParameterizedTest
  @CsvSource({
    "1, 1000000, FLAT",
    "2, 262144, FLAT",
    "2, 262145, DIRECT",
    "3, 4096, FLAT",
    "3, 4097, DIRECT",
    "8, 16777216, DIRECT"
  })
  void allReduces(int ranks, long bytes, MessageAlgorithm expected) {
    assertThat(MessageTable.allReduce(bytes, ranks)).isEqualTo(expected);
  }

  @ParameterizedTest
  @CsvSource({
    "1, 1000000000, FLAT",
    "2, 1000000000, FLAT",
    "3, 61439, FLAT",
    "3, 61440, SCATTER",
    "4, 27306, FLAT",
    "4, 27307, SCATTER",
    "6, 16383, FLAT",
    "6, 16384, SCATTER",
    "64, 16383, FLAT",
    "4, 2097151, SCATTER",
    "4, 2097152, SCATTER"
  })
  void whatHasARoot(int ranks, long bytes, MessageAlgorithm expected) {
    assertThat(MessageTable.rooted(bytes, ranks, false)).isEqualTo(expected);
    assertThat(MessageTable.rooted(bytes, ranks, true))
        .isEqualTo(bytes < 1 << 21 ? MessageAlgorithm.FLAT : expected);
  }
}
