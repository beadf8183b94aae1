package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.debug.FlightRecorderConfig;
import dev.weft.c10d.elastic.RankMain;
import dev.weft.c10d.store.FileStore;
import dev.weft.tensor.Tensor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The four modes, with a rank that the launcher started and one that it did not. Rank 0 is a
 * process whose call becomes overdue, rank 1 lives here and hears of it, or not.
 */
@Timeout(180)
class ErrorHandlingTest {
  @TempDir static Path folder;

  private static final Map<String, Child> CHILDREN = new LinkedHashMap<>();

  private record Child(Process process, Path out, Path folder, RankContext other, FileStore store) {
    String end() throws Exception {
      assertThat(process.waitFor(120, TimeUnit.SECONDS)).as(Files.readString(out)).isTrue();
      return Files.readString(out);
    }
  }

  @BeforeAll
  static void startAll() throws Exception {
    for (int mode = 0; mode < 4; mode++) {
      for (boolean launched : new boolean[] {true, false}) {
        start(mode, launched);
      }
    }
  }

  private static void start(int mode, boolean launched) throws Exception {
    String name = mode + " " + launched;
    Path place = Files.createDirectory(folder.resolve(name.replace(' ', '-')));
    Path out = place.resolve("out");
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx128m",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path")));
    if (launched) {
      command.add(RankMain.class.getName());
    }
    command.addAll(List.of(ErrorModeRank.class.getName(), "file://" + place.resolve("store")));
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile());
    Map<String, String> env = builder.environment();
    env.keySet().removeAll(List.of("RANK", "WEFT_LAUNCHED"));
    env.put(
        mode % 2 == 0 ? "WEFT_ASYNC_ERROR_HANDLING" : "TORCH_NCCL_ASYNC_ERROR_HANDLING", "" + mode);
    env.put("WEFT_COORD_CHECK_MILSEC", "50");
    env.put("WEFT_FR_DUMP_TEMP_FILE", place.resolve("dump_").toString());
    if (launched) {
      env.put("WEFT_LAUNCHED", "1");
      env.put("TORCHELASTIC_ERROR_FILE", place.resolve("error.json").toString());
    }
    Process process = builder.start();
    FileStore store = FileStore.open(place.resolve("store"), 2, Duration.ofSeconds(60));
    RankContext other =
        new RankContext(
            1,
            2,
            () -> store,
            Duration.ofSeconds(60),
            "host",
            null,
            null,
            FlightRecorderConfig.fromEnvironment(Map.of("WEFT_DUMP_ON_TIMEOUT", "0")));
    CHILDREN.put(name, new Child(process, out, place, other, store));
    Thread joins = new Thread(() -> other.world().backend("cpu"), "joins-" + name);
    joins.setDaemon(true);
    joins.start();
  }

  @AfterAll
  static void endAll() {
    for (Child c : CHILDREN.values()) {
      c.process().destroyForcibly();
      c.other().close(Duration.ofSeconds(1));
      c.store().close();
    }
    CHILDREN.clear();
  }

  /**
   * @param ends whether the process ends by itself
   * @param aborts whether its calls end before
   * @param told whether the other rank hears of it while the process lives, with its cause
   */
  @ParameterizedTest(name = "mode {0}, launched {1}")
  @CsvSource({
    "0, true, false, false, false",
    "1, true, true, true, true",
    "2, true, false, true, false",
    "3, true, true, false, true",
    "0, false, false, false, false",
    "1, false, false, true, true",
    "2, false, false, true, false",
    "3, false, false, true, true"
  })
  void anOverdueCall(int mode, boolean launched, boolean ends, boolean aborts, boolean told)
      throws Exception {
    Child child = CHILDREN.get(mode + " " + launched);
    String said = child.end();
    String cause = "watchdog of rank 0: recv 0<-1 (seq 1) in group 'world'";
    assertThat(child.process().exitValue()).as(said).isEqualTo(ends ? 1 : 0);
    assertThat(said.contains("the call ended: true")).as(said).isEqualTo(aborts);
    // Every mode says what was overdue, where the ranks are, and writes a dump.
    assertThat(said).contains(cause).contains("desync report of group 'world'");
    assertThat(child.folder().resolve("dump_0")).exists();
    if (ends) {
      assertThat(said)
          .contains("weft: this rank cannot go on and ends: ")
          .doesNotContain("the other group");
      assertThat(Files.readString(child.folder().resolve("error.json")))
          .contains("watchdog of rank 0");
    } else {
      assertThat(said)
          .contains(aborts ? "the other group is aborted" : "the other group works")
          .contains(aborts ? "the call failed" : "the call is under way");
    }
    assertThat(
            FailureNotice.read(child.store()).map(FailureNotice::reason).orElse("").contains(cause))
        .isEqualTo(told);
    // The process is gone; whoever waits for it is told why, or at least that.
    Throwable heard =
        org.assertj.core.api.Assertions.catchThrowable(
            () -> child.other().world().recv(Tensor.of(new float[1]), 0, 9));
    assertThat(heard)
        .isInstanceOf(PeerFailedException.class)
        .hasMessageContaining("rank 0 failed")
        .hasMessageContaining(told ? cause : "was killed");
  }

  @Test
  void badValuesAreExplained() {
    assertThat(ErrorHandling.fromEnvironment(Map.of())).isEqualTo(ErrorHandling.SKIP_CLEAN_UP);
    assertThat(
            ErrorHandling.fromEnvironment(
                Map.of("WEFT_ASYNC_ERROR_HANDLING", "2", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1")))
        .isEqualTo(ErrorHandling.CLEAN_UP_ONLY);
    assertThatThrownBy(
            () -> ErrorHandling.fromEnvironment(Map.of("NCCL_ASYNC_ERROR_HANDLING", "abort")))
        .hasMessageContaining("NCCL_ASYNC_ERROR_HANDLING is 'abort'; expected 0, 1, 2 or 3");
    assertThat(ErrorHandling.propagates(Map.of("TORCH_NCCL_PROPAGATE_ERROR", "0"))).isFalse();
  }
}
