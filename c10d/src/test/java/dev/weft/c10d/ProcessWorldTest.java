package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.store.HashStore;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Ranks as processes: they meet through a store, talk over TCP, and see each other die. */
@Timeout(180)
class ProcessWorldTest {
  @TempDir Path folder;

  private final List<Rank> ranks = new ArrayList<>();

  /** A rank's process and what it says. */
  private static final class Rank {
    final Process process;
    final List<String> lines = new ArrayList<>();
    final Thread reader;

    Rank(Process process) {
      this.process = process;
      this.reader = new Thread(this::read);
      reader.start();
    }

    private void read() {
      try (BufferedReader in =
          new BufferedReader(
              new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
        String line;
        while ((line = in.readLine()) != null) {
          synchronized (lines) {
            lines.add(line);
            lines.notifyAll();
          }
        }
      } catch (IOException e) {
        synchronized (lines) {
          lines.add("reading failed: " + e);
        }
      }
    }

    void awaitLine(String text) throws InterruptedException {
      synchronized (lines) {
        while (lines.stream().noneMatch(l -> l.contains(text))) {
          assertThat(process.isAlive()).as("alive before saying '%s': %s", text, lines).isTrue();
          lines.wait(100);
        }
      }
    }

    String end(long seconds) throws InterruptedException {
      assertThat(process.waitFor(seconds, TimeUnit.SECONDS)).as("ended: %s", lines).isTrue();
      reader.join();
      synchronized (lines) {
        return String.join("\n", lines);
      }
    }
  }

  @AfterEach
  void killAll() {
    ranks.forEach(r -> r.process.destroyForcibly());
  }

  private void start(String url, int size, String what) throws IOException {
    for (int r = 0; r < size; r++) {
      ProcessBuilder builder =
          new ProcessBuilder(
              Path.of(System.getProperty("java.home"), "bin", "java").toString(),
              "-Xmx256m",
              "-XX:TieredStopAtLevel=1",
              "-cp",
              System.getProperty("java.class.path"),
              RankProcess.class.getName(),
              url,
              String.valueOf(r),
              String.valueOf(size),
              what);
      builder.environment().remove("RANK");
      ranks.add(new Rank(builder.redirectErrorStream(true).start()));
    }
  }

  private String file() {
    return "file://" + folder.resolve("store");
  }

  private static String tcp() throws IOException {
    try (ServerSocket free = new ServerSocket(0)) {
      return "tcp://127.0.0.1:" + free.getLocalPort();
    }
  }

  @Test
  void theyMeetThroughAFile() throws Exception {
    start(file(), 3, "collectives");
    for (int r = 0; r < 3; r++) {
      String said = ranks.get(r).end(60);
      assertThat(said).contains("joined " + r + " of 3").endsWith("done");
      assertThat(said.contains("pair 2")).isEqualTo(r != 1);
      assertThat(ranks.get(r).process.exitValue()).isZero();
    }
  }

  @Test
  void theyMeetThroughATcpStore() throws Exception {
    start(tcp(), 2, "collectives");
    for (Rank r : ranks) {
      assertThat(r.end(60)).endsWith("done");
    }
  }

  /** A rank that is killed is named by the others, in seconds and not at the timeout. */
  @Test
  void aKilledRankIsNamed() throws Exception {
    start(file(), 3, "forever");
    for (Rank r : ranks) {
      r.awaitLine("running");
    }
    ranks.get(1).process.destroyForcibly();
    for (int r : new int[] {0, 2}) {
      assertThat(ranks.get(r).end(10))
          .contains("failed: PeerFailedException: all_reduce (seq ")
          .contains("rank 1 failed")
          .contains("was killed");
      assertThat(ranks.get(r).process.exitValue()).isEqualTo(3);
    }
  }

  /** A rank that stands still is named at the timeout, also while others write to it. */
  @Test
  void aStoppedRankIsNamed() throws Exception {
    start(file(), 3, "forever-brief");
    for (Rank r : ranks) {
      r.awaitLine("running");
    }
    String pid = String.valueOf(ranks.get(1).process.pid());
    Process stop = new ProcessBuilder("kill", "-STOP", pid).start();
    assertThat(stop.waitFor()).isZero();
    for (int r : new int[] {0, 2}) {
      // A rank that is one operation ahead also misses the one that waits for the stopped rank.
      assertThat(ranks.get(r).end(15))
          .containsPattern("timed out after 2000 ms: ranks? .*1.* did not arrive|rank [02] failed");
    }
    assertThat(ranks.get(0).end(1) + ranks.get(2).end(1))
        .contains("timed out after 2000 ms: rank 1 did not arrive");
  }

  /** P46: who does not come is named, by those who did. */
  @Test
  void missingRanksAreNamedWhenTheWorldIsMade() {
    try (HashStore store = new HashStore()) {
      var recorder = dev.weft.c10d.debug.FlightRecorderConfig.fromEnvironment(Map.of());
      RankContext alone =
          new RankContext(0, 3, () -> store, Duration.ofMillis(300), "host", null, null, recorder);
      assertThatThrownBy(() -> alone.world().backend("cpu"))
          .isInstanceOf(RendezvousException.class)
          .hasMessageContaining("rank 0 waited 300 ms for ranks [1, 2]");
      RankContext last =
          new RankContext(2, 3, () -> store, Duration.ofMillis(300), "host", null, null, recorder);
      assertThatThrownBy(() -> last.world().backend("cpu"))
          .isInstanceOf(RendezvousException.class)
          .hasMessageContaining("rank 2 cannot meet the others: rank 0 failed")
          .hasMessageContaining("rank 0 waited 300 ms for ranks [1, 2]");
    }
    // Without a word of rank 0's: what rank 2 itself waited for.
    try (HashStore store = new HashStore()) {
      var recorder = dev.weft.c10d.debug.FlightRecorderConfig.fromEnvironment(Map.of());
      RankContext last =
          new RankContext(2, 3, () -> store, Duration.ofMillis(300), "host", null, null, recorder);
      assertThatThrownBy(() -> last.world().backend("cpu"))
          .isInstanceOf(RendezvousException.class)
          .hasMessageContaining("for rank 0 to come to the world of 3");
    }
  }

  /** P54: the death of the rank that hosts the store is the death of a peer, too. */
  @Test
  void aKilledStoreHostIsNamed() throws Exception {
    start(tcp(), 3, "forever");
    for (Rank r : ranks) {
      r.awaitLine("running");
    }
    ranks.get(0).process.destroyForcibly();
    for (int r : new int[] {1, 2}) {
      assertThat(ranks.get(r).end(15)).contains("PeerFailedException").contains("rank 0 failed");
    }
  }

  /** P48: the others end with the first failure's own words. */
  @Test
  void theFirstFailureIsTold() throws Exception {
    start(file(), 3, "throws-on-1");
    for (int r : new int[] {0, 2}) {
      assertThat(ranks.get(r).end(20))
          .contains("PeerFailedException: barrier (seq 2)")
          .contains("rank 1 failed")
          .contains("out of memory in step 2");
    }
  }

  @Test
  void mismatchesAreTheSameErrorEverywhere() throws Exception {
    start(file(), 3, "mismatch");
    for (Rank r : ranks) {
      assertThat(r.end(30))
          .contains("failed: MismatchException")
          .contains("ranks [0, 2] call all_reduce(sum) of float32[4]")
          .contains("rank 1 calls all_reduce(sum) of float32[5]");
    }
  }

  /** P49: no close at all, then exit: quiet, and nobody hangs. */
  @Test
  void exitWithoutClosing() throws Exception {
    start(file(), 2, "no-close");
    for (Rank r : ranks) {
      assertThat(r.end(30)).endsWith("ending without closing");
      assertThat(r.process.exitValue()).isZero();
    }
  }
}
