package dev.weft.c10d.elastic;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.elastic.StatusBlock.Row;
import dev.weft.c10d.metrics.StatusFile;
import dev.weft.c10d.metrics.StatusFile.Status;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LiveScreenTest {
  private static final long NOW = 1_000_000_000_000L;

  @Test
  void aBlockHasALineForEachRank() {
    List<Row> rows =
        List.of(
            new Row(4, null, new Status(40, 2.9719, 12_345.4, 83L << 20, 0, NOW - 500)),
            new Row(5, null, new Status(39, Double.NaN, 0, 1L << 20, 11L << 30, NOW - 31_000)),
            new Row(6, null, null),
            new Row(7, "exit code 137 (SIGKILL)", null),
            new Row(8, "exit code 0", new Status(100, 1, 1, 0, 0, NOW)));
    assertThat(String.join("\n", StatusBlock.render("Train", rows, Duration.ofSeconds(3_725), NOW)))
        .isEqualTo(
            """
            Train  1:02:05
             rank  state                       step        loss     tokens/s  memory
                4  training                      40      2.9719       12,345  83.0 MiB
                5  no news for 31 s              39           -            0  11.0 GiB GPU, 1.0 MiB host
                6  running                        -           -            -  -
                7  exit code 137 (SIGKILL)         -           -            -  -
                8  done                         100      1.0000            1  0.0 MiB""");
  }

  /** A block that is higher than the terminal could not be drawn over. */
  @Test
  void manyRanksShareALine() {
    List<Row> rows = new ArrayList<>();
    for (int r = 0; r < 64; r++) {
      rows.add(new Row(r, r > 61 ? "exit code 0" : null, new Status(r, 1, 1, 0, 0, NOW)));
    }
    List<String> lines = StatusBlock.render("t", rows, Duration.ZERO, NOW);
    assertThat(lines).hasSize(2 + StatusBlock.MOST);
    assertThat(lines.get(lines.size() - 1))
        .isEqualTo("   …  49 more ranks, 2 of them ended, at steps 15 to 63");
  }

  /** What a terminal of unlimited width shows after some output: enough of ECMA-48 for that. */
  static List<String> shown(String output) {
    List<String> rows = new ArrayList<>(List.of(""));
    int row = 0;
    for (int i = 0; i < output.length(); i++) {
      char c = output.charAt(i);
      if (c == '\u001b') {
        int end = i + 2;
        while (!Character.isLetter(output.charAt(end))) {
          end++;
        }
        if (output.charAt(end) == 'A') {
          row -= Integer.parseInt(output.substring(i + 2, end));
        } else if (output.charAt(end) == 'J') {
          rows.subList(row, rows.size()).clear();
          rows.add("");
        }
        i = end;
      } else if (c == '\n') {
        row++;
        if (row == rows.size()) {
          rows.add("");
        }
      } else if (c != '\r') {
        rows.set(row, rows.get(row) + c);
      }
    }
    return rows;
  }

  @Test
  void outputScrollsAboveTheBlock() throws IOException {
    ByteArrayOutputStream terminal = new ByteArrayOutputStream();
    LiveScreen screen = new LiveScreen(terminal, terminal);
    int[] step = {0};
    Supplier<List<String>> block = () -> List.of("title", "step " + step[0]);
    screen.out().write("before\n".getBytes(UTF_8));
    screen.show(block);
    screen.redraw();
    assertThat(shown(terminal.toString(UTF_8))).containsExactly("before", "title", "step 0", "");
    step[0] = 1;
    screen.out().write("one\ntwo\n".getBytes(UTF_8));
    screen.err().write("half\r".getBytes(UTF_8));
    assertThat(shown(terminal.toString(UTF_8)))
        .containsExactly("before", "one", "two", "half", "title", "step 1", "");
    step[0] = 2;
    screen.leave(block);
    screen.err().write("after\n".getBytes(UTF_8));
    assertThat(shown(terminal.toString(UTF_8)))
        .containsExactly("before", "one", "two", "half", "title", "step 2", "after", "");
  }

  @Test
  void theLastStatusIsInTheFileWhenItIsClosed(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("status.json");
    assertThat(StatusFile.read(file)).isEmpty();
    Status last = new Status(9, Double.NaN, 2.5, 3, 4, 5);
    try (StatusFile status = StatusFile.open(file)) {
      status.tell(new Status(8, 1, 2, 3, 4, 5));
      status.tell(last);
    }
    assertThat(StatusFile.read(file)).hasValue(last);
    assertThat(folder.toFile().list()).containsExactly("status.json");
  }
}
