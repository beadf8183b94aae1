package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Ranks on two hosts that share no network but a cable: two network namespaces with a pair of
 * virtual interfaces, as root and with {@code ip}; skipped elsewhere.
 */
@Timeout(180)
class HostNamespacesTest {
  private static final String PREFIX = "weft-test-" + ProcessHandle.current().pid() + "-";
  private static final List<String> HOSTS = List.of(PREFIX + 0, PREFIX + 1);

  @TempDir Path folder;

  private final List<Process> ranks = new ArrayList<>();

  /** What a command says where it fails; or empty. */
  private static String ip(String... arguments) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(List.of("ip"));
    command.addAll(List.of(arguments));
    Process process;
    try {
      process = new ProcessBuilder(command).redirectErrorStream(true).start();
    } catch (IOException e) {
      return e.getMessage();
    }
    String said = new String(process.getInputStream().readAllBytes());
    return process.waitFor() == 0 ? "" : String.join(" ", command) + ": " + said.strip();
  }

  private static void must(String... arguments) throws IOException, InterruptedException {
    assertThat(ip(arguments)).isEmpty();
  }

  @BeforeEach
  void makeHosts() throws Exception {
    for (String host : HOSTS) {
      String failed = ip("netns", "add", host);
      assumeTrue(failed.isEmpty(), "network namespaces cannot be made here: " + failed);
    }
    String cable = "type veth peer name eth0 netns " + HOSTS.get(1);
    List<String> command = new ArrayList<>(List.of("link", "add", "eth0", "netns", HOSTS.get(0)));
    command.addAll(List.of(cable.split(" ")));
    String failed = ip(command.toArray(new String[0]));
    assumeTrue(failed.isEmpty(), "virtual interfaces cannot be made here: " + failed);
    for (int h = 0; h < HOSTS.size(); h++) {
      must("-n", HOSTS.get(h), "link", "set", "lo", "up");
      must("-n", HOSTS.get(h), "link", "set", "eth0", "up");
      must("-n", HOSTS.get(h), "addr", "add", "10.78.0." + (h + 1) + "/24", "dev", "eth0");
    }
  }

  @AfterEach
  void removeHosts() throws Exception {
    ranks.forEach(Process::destroyForcibly);
    for (Process rank : ranks) {
      rank.waitFor();
    }
    for (String host : HOSTS) {
      String unused = ip("netns", "del", host);
    }
  }

  private Path start(int rank, int size, String algorithms) throws IOException {
    String host = HOSTS.get(rank * HOSTS.size() / size);
    Path said = folder.resolve("rank" + rank);
    ProcessBuilder builder =
        new ProcessBuilder(
            "ip",
            "netns",
            "exec",
            host,
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            System.getProperty("java.class.path"),
            RankProcess.class.getName(),
            "tcp://10.78.0.1:29500",
            String.valueOf(rank),
            String.valueOf(size),
            "hosts");
    builder.environment().remove("RANK");
    // The kernel would say that all are on one machine.
    builder.environment().put("WEFT_HOST_ID", host);
    builder.environment().put("WEFT_HOST_ALGORITHM", algorithms);
    ranks.add(builder.redirectErrorStream(true).redirectOutput(said.toFile()).start());
    return said;
  }

  /** Every size comes out right and the same on all ranks, the table's ways and the others. */
  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      value = {
        "4; ''; shared memory inside hosts, pairwise messages across",
        "4; all_reduce=hierarchical;"
            + "shared memory inside hosts, pairwise messages (all_reduce=hierarchical) across",
        "3; all_reduce=ring; pairwise messages (all_reduce=ring)"
      })
  void allReducesOfSeveralHosts(int size, String algorithms, String expected) throws Exception {
    List<Path> said = new ArrayList<>();
    for (int r = 0; r < size; r++) {
      said.add(start(r, size, algorithms));
    }
    for (int r = 0; r < size; r++) {
      assertThat(ranks.get(r).waitFor(100, TimeUnit.SECONDS)).as("rank %s ended", r).isTrue();
      assertThat(Files.readString(said.get(r)))
          .contains("algorithm " + expected + "\n")
          .endsWith("done\n");
    }
  }
}
