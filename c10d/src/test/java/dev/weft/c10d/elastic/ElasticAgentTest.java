package dev.weft.c10d.elastic;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Elastic runs of several agents on this machine, each of them and of their ranks a process. */
@Timeout(120)
class ElasticAgentTest {
  private static final int SECONDS = 60;

  @TempDir private Path folder;
  private final List<Process> agents = new ArrayList<>();
  private final int port = freePort();
  private int joinSeconds = SECONDS;

  private static int freePort() {
    try (var socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  /** Starts an agent: MIN, MAX, ranks, restarts, the program and its arguments. */
  private Process agent(int min, int max, int ranks, int restarts, Class<?> main, String... args)
      throws IOException {
    var command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx64m",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                ElasticRanks.Agent.class.getName()));
    for (int number : new int[] {min, max, port, ranks, restarts, joinSeconds}) {
      command.add(Integer.toString(number));
    }
    command.add(main.getName());
    command.addAll(List.of(args));
    int number = agents.size();
    var process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("agent" + number).toFile())
            .start();
    agents.add(process);
    return process;
  }

  @AfterEach
  void endAgents() throws InterruptedException {
    for (Process agent : agents) {
      if (agent.isAlive()) {
        agent.destroyForcibly().waitFor();
      }
    }
  }

  private List<String> output(int agent) throws IOException {
    return Files.readAllLines(folder.resolve("agent" + agent), UTF_8);
  }

  private int exitOf(int agent) throws Exception {
    boolean ended = agents.get(agent).waitFor(SECONDS, TimeUnit.SECONDS);
    assertThat(ended).as("agent %d has ended; it said %s", agent, output(agent)).isTrue();
    return agents.get(agent).exitValue();
  }

  private void await(String what, BooleanSupplier condition) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as("%s; agent 0 said %s", what, output(0)).isLessThan(end);
      Thread.sleep(20);
    }
  }

  private void awaitFile(String name) throws Exception {
    await(name + " is there", () -> Files.exists(folder.resolve(name)));
  }

  /** P48, P51: a killed rank ends the attempt on all nodes, and the next has new ranks and keys. */
  @Test
  void aKilledRankIsStartedAgainWithAllOthers() throws Exception {
    agent(2, 2, 2, 3, ElasticRanks.Breaking.class, "kill", "1");
    agent(2, 2, 2, 3, ElasticRanks.Breaking.class, "kill", "1");

    assertThat(exitOf(0)).as("%s", output(0)).isZero();
    assertThat(exitOf(1)).as("%s", output(1)).isZero();
    var all = new ArrayList<>(output(0));
    all.addAll(output(1));
    for (int restart = 0; restart < 2; restart++) {
      for (int rank = 0; rank < 4; rank++) {
        assertThat(all)
            .contains(
                "[%d:%d]| rank %d of 4, local %d of 2, node %d of 2, restart %d of 3, run test"
                    .formatted(rank / 2, rank, rank, rank % 2, rank / 2, restart));
      }
    }
    assertThat(all)
        .anyMatch(line -> line.contains("rank 1 (node 0) failed: exit code 137 (SIGKILL)"));
  }

  /** P51: the code and the reason of the rank that failed reach the user of every agent. */
  @Test
  void whenNoRestartIsLeftTheRunFailsWithTheRanksCodeAndReason() throws Exception {
    agent(2, 2, 1, 1, ElasticRanks.Breaking.class, "5", "9");
    agent(2, 2, 1, 1, ElasticRanks.Breaking.class, "5", "9");

    for (int agent = 0; agent < 2; agent++) {
      assertThat(exitOf(agent)).as("%s", output(agent)).isEqualTo(5);
      assertThat(output(agent))
          .anyMatch(
              line ->
                  line.startsWith("weft: run 'test' failed: rank 1 (node 1) failed: exit code 5")
                      && line.endsWith("all 1 restarts are used"))
          .contains("    about to fail")
          .last()
          .asString()
          .startsWith("weft: rank 1 on node 1 (")
          .contains("failed first: exit code 5, pid ");
    }
  }

  @Test
  void anExceptionIsShownWithItsStack() throws Exception {
    agent(1, 1, 2, 0, ElasticRanks.Breaking.class, "throw", "9");

    assertThat(exitOf(0)).isEqualTo(1);
    var lines = output(0);
    assertThat(lines.subList(lines.size() - 3, lines.size()))
        .anyMatch(line -> line.startsWith("weft: rank 1 on node 0 ("))
        .contains("    java.lang.IllegalStateException: batch 17 is empty")
        .anyMatch(line -> line.contains("at ") && line.contains("ElasticRanks$Breaking.main"));
  }

  /** P54: the loss of a node is no failure of a rank, and takes no restart. */
  @Test
  void theOthersGoOnWithoutAnAgentThatIsKilled() throws Exception {
    var program = ElasticRanks.UntilWorldHas.class;
    agent(1, 2, 2, 0, program, "2", folder.toString(), "rank3of4");
    agent(1, 2, 2, 0, program, "2", folder.toString(), "rank3of4");
    awaitFile("rank3of4");
    int victim = servesStore(0) ? 1 : 0;
    agents.get(victim).destroyForcibly();

    assertThat(exitOf(1 - victim)).as("%s", output(1 - victim)).isZero();
    assertThat(output(1 - victim))
        .contains("[0]| rank 0 of 2, local 0 of 2, node 0 of 1, restart 0 of 0, run test")
        .contains("[1]| rank 1 of 2, local 1 of 2, node 0 of 1, restart 0 of 0, run test");
  }

  /** A node that stands still is lost, too; when it goes on it finds that the run is over. */
  @Test
  void theOthersGoOnWithoutAnAgentThatIsStopped() throws Exception {
    var program = ElasticRanks.UntilWorldHas.class;
    agent(1, 2, 2, 0, program, "2", folder.toString(), "rank3of4");
    agent(1, 2, 2, 0, program, "2", folder.toString(), "rank3of4");
    awaitFile("rank3of4");
    int victim = servesStore(0) ? 1 : 0;
    signal("STOP", agents.get(victim));
    try {
      assertThat(exitOf(1 - victim)).as("%s", output(1 - victim)).isZero();
      assertThat(output(1 - victim))
          .anyMatch(line -> line.contains("is silent, and taken for dead"))
          .contains("[0]| rank 0 of 2, local 0 of 2, node 0 of 1, restart 0 of 0, run test")
          .contains("[1]| rank 1 of 2, local 1 of 2, node 0 of 1, restart 0 of 0, run test");
    } finally {
      signal("CONT", agents.get(victim));
    }
    assertThat(exitOf(victim)).as("%s", output(victim)).isBetween(0, 1);
  }

  private static void signal(String name, Process process) throws Exception {
    Process kill = new ProcessBuilder("kill", "-" + name, "" + process.pid()).inheritIO().start();
    assertThat(kill.waitFor()).isZero();
  }

  /** All nodes have as many ranks: another number is refused, and the run goes on. */
  @Test
  void anAgentWithAnotherNumberOfRanksIsRefused() throws Exception {
    var program = ElasticRanks.UntilWorldHas.class;
    agent(1, 2, 2, 0, program, "9", folder.toString(), "");
    awaitFile("rank1of2");
    agent(1, 2, 1, 0, program, "9", folder.toString(), "");

    assertThat(exitOf(1)).isNotZero();
    assertThat(String.join("\n", output(1)))
        .contains("run 'test' was started with")
        .contains("--nproc-per-node 2")
        .contains("this agent has")
        .contains("--nproc-per-node 1");
    assertThat(agents.get(0).isAlive()).isTrue();
  }

  /** Whether an agent listens at the endpoint. */
  private boolean servesStore(int agent) throws IOException {
    var links = new ArrayList<String>();
    try (var fds = Files.list(Path.of("/proc", Long.toString(agents.get(agent).pid()), "fd"))) {
      for (Path fd : fds.toList()) {
        if (Files.isSymbolicLink(fd)) {
          links.add(Files.readSymbolicLink(fd).toString());
        }
      }
    }
    var sockets = new ArrayList<>(Files.readAllLines(Path.of("/proc/net/tcp")));
    sockets.addAll(Files.readAllLines(Path.of("/proc/net/tcp6")));
    String listening = ":%04X .* 0A .*".formatted(port);
    return sockets.stream()
        .filter(line -> line.strip().replaceAll("\\s+", " ").matches("\\d+: \\w+" + listening))
        .map(line -> line.strip().split("\\s+")[9])
        .anyMatch(inode -> links.contains("socket:[" + inode + "]"));
  }

  /** P54: whose loss it was stands in the message. */
  @Test
  void theLossOfTheStoreIsToldApartFromThatOfARank() throws Exception {
    var program = ElasticRanks.UntilWorldHas.class;
    agent(1, 2, 1, 0, program, "9", folder.toString(), "");
    agent(1, 2, 1, 0, program, "9", folder.toString(), "");
    awaitFile("rank1of2");
    int victim = servesStore(0) ? 0 : 1;
    agents.get(victim).destroyForcibly();

    assertThat(exitOf(1 - victim)).isEqualTo(1);
    assertThat(output(1 - victim))
        .last()
        .asString()
        .contains("the agents' rendezvous store at 127.0.0.1:" + port + " is lost")
        .contains("No rank is known to have failed");
  }

  @Test
  void anAgentThatComesLateIsTakenInAtOnce() throws Exception {
    var program = ElasticRanks.UntilWorldHas.class;
    agent(1, 2, 1, 0, program, "2", folder.toString(), "rank0of1");
    awaitFile("rank0of1");
    agent(1, 2, 1, 0, program, "2", folder.toString(), "rank0of1");

    assertThat(exitOf(0)).as("%s", output(0)).isZero();
    assertThat(exitOf(1)).as("%s", output(1)).isZero();
    assertThat(output(0))
        .contains("[0]| rank 0 of 1, local 0 of 1, node 0 of 1, restart 0 of 0, run test")
        .contains("[0:0]| rank 0 of 2, local 0 of 1, node 0 of 2, restart 0 of 0, run test");
    assertThat(output(1))
        .contains("[1:1]| rank 1 of 2, local 0 of 1, node 1 of 2, restart 0 of 0, run test");
  }

  @Test
  void withTooFewAgentsTheRunFails() throws Exception {
    joinSeconds = 3;
    agent(2, 3, 1, 0, ElasticRanks.Breaking.class, "kill", "0");

    assertThat(exitOf(0)).isEqualTo(1);
    assertThat(output(0))
        .last()
        .asString()
        .startsWith(
            "weft: run 'test' failed: 1 of at least 2 nodes joined attempt 0 within 3000 ms");
  }

  /** P50: SIGTERM reaches the ranks, which get their time, and the others go on. */
  @Test
  void anAgentThatIsAskedToEndLeavesAndItsRanksGetTerm() throws Exception {
    agent(1, 1, 2, 0, ElasticRanks.Patient.class, folder.toString());
    awaitFile("rank0");
    awaitFile("rank1");
    agents.get(0).destroy();

    assertThat(exitOf(0)).isEqualTo(143);
    assertThat(folder.resolve("term0")).exists();
    assertThat(folder.resolve("term1")).exists();
    assertThat(output(0)).noneMatch(line -> line.contains("failed first"));
  }

  @Test
  void theOthersGoOnWithoutAnAgentThatLeaves() throws Exception {
    var program = ElasticRanks.UntilWorldHas.class;
    agent(1, 2, 1, 0, program, "1", folder.toString(), "rank1of2");
    await("the endpoint is served", () -> isServed());
    agent(1, 2, 1, 0, program, "1", folder.toString(), "rank1of2");
    awaitFile("rank1of2");
    agents.get(1).destroy();

    assertThat(exitOf(1)).isEqualTo(143);
    assertThat(exitOf(0)).as("%s", output(0)).isZero();
    assertThat(output(0))
        .anyMatch(line -> line.contains("was asked to end and leaves"))
        .contains("[0]| rank 0 of 1, local 0 of 1, node 0 of 1, restart 0 of 0, run test");
  }

  private boolean isServed() {
    try (var socket = new java.net.Socket(InetAddress.getLoopbackAddress(), port)) {
      return socket.isConnected();
    } catch (IOException e) {
      return false;
    }
  }
}
