package dev.weft.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.c10d.BackendRegistry;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.World;
import dev.weft.c10d.store.Rendezvous;
import dev.weft.c10d.store.TcpStore;
import dev.weft.tensor.Tensor;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The commands as a user types them. */
@Timeout(60)
class WeftCommandTest {
  private final StringWriter err = new StringWriter();

  private int execute(String... args) {
    var commands = Weft.commandLine();
    commands.setErr(new PrintWriter(err, true));
    return commands.execute(args);
  }

  private static Process weft(String... args) throws Exception {
    return new ProcessBuilder(weftCommand(args)).redirectErrorStream(true).start();
  }

  private static List<String> weftCommand(String... args) {
    var command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx64m",
                "-cp",
                System.getProperty("java.class.path"),
                Weft.class.getName()));
    command.addAll(List.of(args));
    return command;
  }

  private static List<String> output(Process process) throws Exception {
    try (var in =
        new BufferedReader(
            new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))) {
      return in.lines().toList();
    }
  }

  /** Prints its arguments and options, and fails if it is told to. */
  static final class Program {
    private Program() {}

    public static void main(String[] args) {
      try (var met = Rendezvous.at("env://").join()) {
        System.out.println(
            met.rank()
                + " of "
                + met.worldSize()
                + " "
                + List.of(args)
                + " "
                + Long.getLong("answer"));
        met.store().barrier("printed", met.worldSize());
        if (met.rank() == 1 && List.of(args).contains("--fail")) {
          System.exit(5);
        }
      }
    }
  }

  @Test
  void runPassesOnWhatFollowsTheMainClass() throws Exception {
    var run =
        weft(
            "run",
            "--nproc-per-node",
            "2",
            "--jvm-arg=-Xmx64m",
            "--jvm-arg=-Danswer=42",
            Program.class.getName(),
            "--help",
            "-x",
            "y");
    assertThat(output(run))
        .containsExactlyInAnyOrder(
            "[0]| 0 of 2 [--help, -x, y] 42", "[1]| 1 of 2 [--help, -x, y] 42");
    assertThat(run.waitFor()).isZero();
  }

  /** P50, P51 */
  @Test
  void runEndsWithTheCodeOfTheRankThatFailed() throws Exception {
    var run =
        weft("run", "--nproc-per-node", "2", "--no-prefix", Program.class.getName(), "--fail");
    assertThat(output(run))
        .contains("0 of 2 [--fail] null")
        .last()
        .asString()
        .startsWith("weft: rank 1 of 2 failed first: exit code 5");
    assertThat(run.waitFor()).isEqualTo(5);
  }

  @Test
  void badUsageIsExplained() {
    assertThat(execute("run", "--nproc-per-node", "0", "Main")).isEqualTo(2);
    assertThat(err.toString()).contains("weft run: nprocPerNode is 0; expected 1 or more");
    assertThat(execute("run")).isEqualTo(2);
    assertThat(err.toString()).contains("MAIN");
    assertThat(execute("store", "--port", "x")).isEqualTo(2);
  }

  @Test
  void badElasticOptionsAreExplained() {
    assertThat(execute("run", "--nnodes", "1:2", "Main")).isEqualTo(2);
    assertThat(err.toString())
        .contains("--nnodes is '1:2' without --rdzv-endpoint; expected HOST:PORT");
    assertThat(execute("run", "--nnodes", "3:2", "--rdzv-endpoint", "localhost:1", "Main"))
        .isEqualTo(2);
    assertThat(err.toString()).contains("nnodes is 3:2; expected MIN:MAX");
    assertThat(execute("run", "--nnodes", "many", "Main")).isEqualTo(2);
    assertThat(err.toString()).contains("--nnodes is 'many'; expected N or MIN:MAX");
    assertThat(execute("run", "--rdzv-conf", "patience=3", "--max-restarts", "1", "Main"))
        .isEqualTo(2);
    assertThat(err.toString()).contains("--rdzv-conf has [patience]; expected some of");
    assertThat(execute("run", "--tee", "Main")).isEqualTo(2);
    assertThat(err.toString()).contains("--tee is given without --log-dir");
  }

  /** Is killed by its own hand before the first restart. */
  static final class Phoenix {
    private Phoenix() {}

    public static void main(String[] args) throws Exception {
      if ("0".equals(System.getenv("TORCHELASTIC_RESTART_COUNT"))) {
        new ProcessBuilder("sh", "-c", "kill -9 " + ProcessHandle.current().pid())
            .start()
            .waitFor();
      }
      System.out.println("back in " + System.getenv("TORCHELASTIC_RUN_ID"));
    }
  }

  @Test
  void runStartsAgainWhatWasKilled() throws Exception {
    var run =
        weft(
            "run",
            "--rdzv-id",
            "ashes",
            "--max-restarts",
            "1",
            "--jvm-arg=-Xmx64m",
            Phoenix.class.getName());
    assertThat(output(run))
        .contains("[0]| back in ashes")
        .anyMatch(line -> line.contains("rank 0 (node 0) failed: exit code 137 (SIGKILL)"));
    assertThat(run.waitFor()).isZero();
  }

  /** Sums the ranks over MPI. */
  static final class OverMpi {
    private OverMpi() {}

    public static void main(String[] args) {
      try (World world = Distributed.init(InitOptions.DEFAULT.withBackend("mpi"))) {
        Tensor t = Tensor.of(new long[] {world.rank() + 1});
        world.group().allReduce(t, ReduceOp.SUM).await();
        System.out.println("rank " + world.rank() + " sees " + t.toLongArray()[0]);
      }
    }
  }

  @Test
  void runStartsRanksThroughMpirun() throws Exception {
    assumeTrue(
        BackendRegistry.isAvailable("mpi"),
        String.valueOf(BackendRegistry.find("mpi").unavailableReason()));
    var command = weftCommand("run", "--mpi", "--nproc-per-node", "2");
    Process version = new ProcessBuilder("mpirun", "--version").redirectErrorStream(true).start();
    if (String.join("", output(version)).contains("Open MPI")) {
      command.add("--mpi-arg=--oversubscribe");
    }
    command.addAll(List.of("--jvm-arg=-Xmx64m", OverMpi.class.getName()));
    var builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT", "1");
    builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    Process run = builder.start();
    assertThat(output(run)).contains("rank 0 sees 3", "rank 1 sees 3");
    assertThat(run.waitFor()).isZero();
  }

  @Test
  void runSaysWhichMpirunIsMissing() throws Exception {
    var builder =
        new ProcessBuilder(weftCommand("run", "--mpi", OverMpi.class.getName()))
            .redirectErrorStream(true);
    builder.environment().put("WEFT_MPIRUN", "/nowhere/mpirun");
    Process run = builder.start();
    assertThat(String.join("\n", output(run)))
        .contains("'/nowhere/mpirun' cannot be started")
        .contains("apt-get install openmpi-bin");
    assertThat(run.waitFor()).isNotZero();
  }

  /** P45 */
  @Test
  void aPortInUseIsNamed() {
    try (var other = TcpStore.at("127.0.0.1", 0).server(true).open()) {
      assertThat(execute("store", "--port", Integer.toString(other.port()))).isEqualTo(1);
      assertThat(err.toString()).contains("127.0.0.1:" + other.port());
    }
  }

  @Test
  void storeServesUntilItIsInterrupted() throws Exception {
    var server = weft("store", "--port", "0", "--world", "2");
    try (var out =
        new BufferedReader(
            new InputStreamReader(server.getInputStream(), StandardCharsets.UTF_8))) {
      String line = String.valueOf(out.readLine());
      assertThat(line).startsWith("weft store: listening on 127.0.0.1:");
      int port = Integer.parseInt(line.substring(line.lastIndexOf(':') + 1));
      var client = TcpStore.at("127.0.0.1", port).worldSize(2).timeout(Duration.ofSeconds(10));
      try (var one = client.open();
          var two = client.open()) {
        one.set("k", "v");
        assertThat(two.getString("k")).isEqualTo("v");
        assertThat(out.readLine()).isEqualTo("weft store: 2 ranks have joined");
        assertThat(server.isAlive()).isTrue();
      }
      server.destroy();
      assertThat(server.waitFor(10, TimeUnit.SECONDS)).isTrue();
    } finally {
      server.destroyForcibly();
    }
  }

  /** Before any rank is started. */
  @Test
  void aMeshThatCannotTrainIsRefused() {
    assertThat(execute("train", "--mesh", "tp=3")).isEqualTo(2);
    assertThat(err.toString())
        .contains("weft train: --mesh tp=3 with --heads 4; expected a multiple of tp=3");
    assertThat(execute("train", "--in-process", "--max-restarts", "2")).isEqualTo(2);
    assertThat(err.toString()).contains("--in-process with --max-restarts 2; expected one of");
  }

  @Test
  void ranksOfATrainingAreProcesses(@TempDir Path folder) throws Exception {
    Process process =
        weft(
            "train",
            "--mesh",
            "dp=2",
            "--out",
            folder.toString(),
            "--steps",
            "2",
            "--warmup",
            "0",
            "--tokenizer",
            "CHAR",
            "--jvm-arg=-Xmx256m");
    List<String> said = output(process);
    assertThat(process.waitFor()).as(String.join("\n", said)).isZero();
    assertThat(said).anyMatch(line -> line.endsWith("parameters on 2 ranks, dp=2"));
    assertThat(said).anyMatch(line -> line.startsWith("step 2/2  loss "));
    assertThat(folder.resolve("losses.csv")).exists();
    assertThat(folder.resolve("report.html")).content().contains("<dt>tokenizer</dt><dd>char</dd>");
  }
}
