package dev.weft.c10d.elastic;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PipedInputStream;
import java.io.PipedOutputStream;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class LinePumpTest {
  private static String pumped(String text, String prefix) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    new LinePump(new ByteArrayInputStream(text.getBytes(UTF_8)), out, prefix, 10).run();
    return out.toString(UTF_8);
  }

  @Test
  void linesGetThePrefixAndALastNewline() {
    assertThat(pumped("a\nb", "[1]| ")).isEqualTo("[1]| a\n[1]| b\n");
    assertThat(pumped("a\r\nb\n", "")).isEqualTo("a\r\nb\n");
  }

  @Test
  void progressKeepsItsCarriageReturn() {
    assertThat(pumped("step 1\rstep 2\r\ndone\n", "")).isEqualTo("step 1\rstep 2\r\ndone\n");
  }

  /** A progress line is shown when it is written, not when its line ends at last. */
  @Test
  void progressIsShownAtOnce() throws IOException, InterruptedException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try (PipedOutputStream source = new PipedOutputStream()) {
      LinePump pump = new LinePump(new PipedInputStream(source), out, "", 0);
      Thread thread = new Thread(pump);
      thread.start();
      source.write("step 1\r".getBytes(UTF_8));
      source.flush();
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
      while (System.nanoTime() < deadline && out.size() == 0) {
        Thread.onSpinWait();
      }
      assertThat(out.toString(UTF_8)).isEqualTo("step 1\r");
      source.close();
      thread.join(TimeUnit.SECONDS.toMillis(20));
    }
  }
}
