package dev.weft.c10d.elastic;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.base.Splitter;
import dev.weft.c10d.StoreException;
import dev.weft.c10d.store.TcpStore;
import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A world of processes on this machine, from its start to its end. */
@Timeout(60)
class LocalLauncherTest {
  @TempDir private Path folder;
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();

  private LaunchConfig.Builder config(Class<?> main, int ranks) {
    return LaunchConfig.of(main.getName(), ranks)
        .jvmArguments(List.of("-Xmx64m", "-XX:TieredStopAtLevel=1", "-Dx=y z"))
        .noticePeriod(Duration.ofSeconds(10))
        .gracePeriod(Duration.ofSeconds(1))
        .output(out, err);
  }

  private List<String> lines(ByteArrayOutputStream stream) {
    return Splitter.on('\n').omitEmptyStrings().splitToList(stream.toString(UTF_8));
  }

  @Test
  void everyRankKnowsItsPlaceAndMeetsTheOthers() {
    int code =
        LocalLauncher.run(
            config(Ranks.Hello.class, 3).arguments(List.of("-a", "b c")).runId("run7").build());

    assertThat(code).as(err.toString(UTF_8)).isZero();
    assertThat(lines(out)).hasSize(3);
    for (int rank = 0; rank < 3; rank++) {
      String omp = Optional.ofNullable(System.getenv("OMP_NUM_THREADS")).orElse("1");
      assertThat(lines(out))
          .contains(
              ("[%d]| {GROUP_RANK=0, GROUP_WORLD_SIZE=1, LOCAL_RANK=%d, LOCAL_WORLD_SIZE=3, MASTER_ADDR=127.0.0.1,"
                      + " OMP_NUM_THREADS=%s, RANK=%d, ROLE_NAME=default, ROLE_RANK=%d, ROLE_WORLD_SIZE=3,"
                      + " TORCHELASTIC_MAX_RESTARTS=0, TORCHELASTIC_RESTART_COUNT=0, TORCHELASTIC_RUN_ID=run7,"
                      + " TORCHELASTIC_USE_AGENT_STORE=True, WORLD_SIZE=3} sum=3 args=[-a, b c] x=y z")
                  .formatted(rank, rank, omp, rank, rank));
    }
  }

  /** The block stays below the output, and its last state on the screen. */
  @Test
  void aTerminalShowsWhereTheRanksAre() {
    int code =
        LocalLauncher.run(
            config(Ranks.Hello.class, 2)
                .live(new LiveScreen(out, err))
                .logs(LogOptions.SHOW_ALL.withFolder(folder, true).withLocalRanks(Set.of(1)))
                .build());

    assertThat(code).as(err.toString(UTF_8)).isZero();
    List<String> lines = lines(out);
    assertThat(lines).filteredOn(line -> line.contains("RANK=0, ROLE")).isEmpty();
    assertThat(lines).filteredOn(line -> line.contains("RANK=1, ROLE")).hasSize(1);
    String end = String.join("\n", lines.subList(lines.size() - 5, lines.size()));
    assertThat(end)
        .contains("Ranks$Hello on 2 ranks  0:00:")
        .containsPattern("    0  done  .*\n    1  done  ");
  }

  /** P52: lines of several ranks never mix. */
  @Test
  void outputIsNeverTorn() {
    assertThat(LocalLauncher.run(config(Ranks.Chatter.class, 4).build())).isZero();

    var lines = lines(out);
    assertThat(lines).hasSize(4 * 1001);
    for (int rank = 0; rank < 4; rank++) {
      String prefix = "[" + rank + "]| ";
      var own =
          lines.stream()
              .filter(line -> line.startsWith(prefix))
              .map(line -> line.substring(prefix.length()))
              .toList();
      assertThat(own).hasSize(1001).endsWith("no line end");
      for (int i = 0; i < 1000; i++) {
        assertThat(own.get(i))
            .isEqualTo("line " + i + " of rank " + rank + " " + "x".repeat(i % 97) + "|");
      }
    }
  }

  @Test
  void outputMayGoWithoutPrefix() {
    assertThat(LocalLauncher.run(config(Ranks.Chatter.class, 1).prefixOutput(false).build()))
        .isZero();
    assertThat(lines(out)).hasSize(1001).allMatch(line -> !line.startsWith("["));
  }

  /** P48, P51: the first cause is in the last lines, and in the errors of the others. */
  @Test
  void aRankThatThrowsEndsTheWorldWithItsReason() {
    long start = System.nanoTime();
    int code = LocalLauncher.run(config(Ranks.Thrower.class, 4).build());

    assertThat(code).isEqualTo(1);
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(20));
    var lines = lines(err);
    assertThat(lines.subList(Math.max(0, lines.size() - 10), lines.size()))
        .anyMatch(line -> line.startsWith("weft: rank 2 of 4 failed first: exit code 1"))
        .anyMatch(line -> line.contains("java.lang.IllegalStateException: batch 17 is empty"))
        .anyMatch(line -> line.contains("Ranks$Thrower.main"))
        .anyMatch(line -> line.startsWith("weft: the other ranks have ended: 0: exit code 1"));
    assertThat(lines)
        .anyMatch(
            line ->
                line.startsWith("[3]| ")
                    && line.contains("rank 2 failed")
                    && line.contains("batch 17"));
  }

  /**
   * P50, P51: a rank that is killed is named with its signal, to the user and to the other ranks.
   */
  @Test
  void aRankThatIsKilledIsNamedWithItsSignal() {
    int code = LocalLauncher.run(config(Ranks.Killed.class, 3).build());

    assertThat(code).isEqualTo(137);
    assertThat(lines(err))
        .anyMatch(
            line ->
                line.startsWith("weft: rank 1 of 3 failed first: exit code 137 (SIGKILL), pid "))
        .anyMatch(
            line ->
                line.startsWith("[0]| ")
                    && line.contains("rank 1 failed")
                    && line.contains("SIGKILL"))
        .anyMatch(
            line ->
                line.startsWith("[2]| ")
                    && line.contains("rank 1 failed")
                    && line.contains("SIGKILL"));
  }

  /** P50: who does not listen to SIGTERM is killed, with its children. */
  @Test
  void aRankThatIgnoresTermIsKilledWithItsChild() throws Exception {
    int code =
        LocalLauncher.run(
            config(Ranks.Stubborn.class, 2)
                .arguments(List.of(folder.toString()))
                .noticePeriod(Duration.ofMillis(100))
                .build());

    assertThat(code).isEqualTo(7);
    assertThat(lines(err))
        .anyMatch(line -> line.startsWith("weft: rank 0 of 2 failed first: exit code 7"))
        .anyMatch(line -> line.contains("1: exit code 137 (SIGKILL)"));
    assertAllGone(1, "rank", "child");
  }

  @Test
  void whatARankLeavesBehindEndsWithTheWorld() throws Exception {
    int code =
        LocalLauncher.run(
            config(Ranks.Litterer.class, 2).arguments(List.of(folder.toString())).build());

    assertThat(code).isZero();
    assertAllGone(1, "child0", "child1");
  }

  /**
   * P50: neither a launcher that is asked to end nor one that is killed leaves a process behind.
   */
  @Test
  void nothingOutlivesALauncherThatIsEnded() throws Exception {
    var launcher = startLauncher();
    launcher.destroy();
    assertThat(launcher.waitFor(20, TimeUnit.SECONDS)).isTrue();
    assertThat(launcher.exitValue()).isEqualTo(143);
    assertThat(folder.resolve("log")).content().doesNotContain("failed first");
    assertAllGone(1, "rank0", "rank1", "child0", "child1");
  }

  @Test
  void nothingOutlivesALauncherThatIsKilled() throws Exception {
    var launcher = startLauncher();
    launcher.destroyForcibly();
    assertThat(launcher.waitFor(20, TimeUnit.SECONDS)).isTrue();
    assertAllGone(15, "rank0", "rank1", "child0", "child1");
  }

  private Process startLauncher() throws Exception {
    var launcher =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx64m",
                "-cp",
                System.getProperty("java.class.path"),
                Ranks.Launcher.class.getName(),
                folder.toString())
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("log").toFile())
            .start();
    for (String name : List.of("rank0", "rank1")) {
      while (!Files.exists(folder.resolve(name))) {
        assertThat(launcher.isAlive()).as("the launcher runs").isTrue();
        Thread.onSpinWait();
      }
    }
    return launcher;
  }

  private void assertAllGone(int seconds, String... names) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
    var alive = new ArrayList<String>();
    do {
      alive.clear();
      for (String name : names) {
        long pid = Long.parseLong(Files.readString(folder.resolve(name)));
        if (ProcessHandle.of(pid)
            .filter(ProcessHandle::isAlive)
            .filter(LocalLauncherTest::isNoZombie)
            .isPresent()) {
          alive.add(name + " (" + pid + ")");
        }
      }
    } while (!alive.isEmpty() && System.nanoTime() < end);
    assertThat(alive).as("processes left").isEmpty();
  }

  /**
   * A process that has ended, and whose new parent has not taken notice, is gone for all purposes.
   */
  private static boolean isNoZombie(ProcessHandle process) {
    try {
      return !Files.readString(Path.of("/proc", Long.toString(process.pid()), "stat"))
          .contains(") Z ");
    } catch (java.io.IOException e) {
      return Files.exists(Path.of("/proc", Long.toString(process.pid())));
    }
  }

  @Test
  void aMainClassThatIsMissingIsNamed() {
    int code =
        LocalLauncher.run(LaunchConfig.of("com.example.Missing", 2).output(out, err).build());
    assertThat(code).isEqualTo(1);
    assertThat(err.toString(UTF_8)).contains("ClassNotFoundException: com.example.Missing");
  }

  /** P45: a port that is in use is named; without one, two launches at once do not meet. */
  @Test
  void aMasterPortInUseIsNamed() {
    try (var other = TcpStore.at("127.0.0.1", 0).server(true).open()) {
      assertThatThrownBy(
              () ->
                  LocalLauncher.run(config(Ranks.Hello.class, 2).masterPort(other.port()).build()))
          .isInstanceOf(StoreException.class)
          .hasMessageContaining("127.0.0.1:" + other.port());
    }
  }

  @Test
  void badConfigurationsAreRefused() {
    assertThatThrownBy(() -> LaunchConfig.of("Main", 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("nprocPerNode is 0");
    assertThatThrownBy(() -> LaunchConfig.of(" ", 1)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void variablesOfTheConfigurationReachTheRanks() {
    int code =
        LocalLauncher.run(
            config(Ranks.Hello.class, 1)
                .environment(Map.of("OMP_NUM_THREADS", "3", "ROLE_NAME", "trainer"))
                .build());
    assertThat(code).isZero();
    assertThat(out.toString(UTF_8)).contains("OMP_NUM_THREADS=3").contains("ROLE_NAME=trainer");
  }
}
