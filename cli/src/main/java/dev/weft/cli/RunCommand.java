package dev.weft.cli;

import dev.weft.c10d.elastic.LaunchConfig;
import dev.weft.c10d.elastic.LocalLauncher;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code weft run}: starts a program once a rank, as processes of this machine. */
@Command(
    name = "run",
    description = {
      "Runs a main class as several ranks on this machine, one JVM each.",
      "Ends all ranks when one fails, and exits with its code."
    },
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class RunCommand implements Callable<Integer> {
  @Option(
      names = {"--nproc-per-node", "--nproc_per_node"},
      paramLabel = "N",
      defaultValue = "1",
      description = "how many ranks to start (default: ${DEFAULT-VALUE})")
  private int nprocPerNode;

  @Option(
      names = {"-cp", "--class-path", "--classpath"},
      paramLabel = "PATH",
      defaultValue = "",
      description = "where the main class is found; Weft's own classes are found without it")
  private String classPath = "";

  @Option(
      names = "--jvm-arg",
      paramLabel = "ARG",
      description = "an option of each rank's JVM, such as --jvm-arg=-Xmx2g; may be repeated")
  private List<String> jvmArguments = List.of();

  @Option(
      names = {"--master-addr", "--master_addr"},
      paramLabel = "HOST",
      defaultValue = "127.0.0.1",
      description = "where the ranks find the launcher's store (default: ${DEFAULT-VALUE})")
  private String masterAddress = "";

  @Option(
      names = {"--master-port", "--master_port"},
      paramLabel = "PORT",
      defaultValue = "0",
      description = "the store's port (default: a free one)")
  private int masterPort;

  @Option(
      names = "--run-id",
      paramLabel = "ID",
      defaultValue = "none",
      description = "a name for the run, which ranks find in TORCHELASTIC_RUN_ID")
  private String runId = "";

  @Option(
      names = "--no-prefix",
      description = "pass output on without \"[rank]| \" before each line")
  private boolean noPrefix;

  @Option(
      names = "--grace-period",
      paramLabel = "SECONDS",
      defaultValue = "5",
      description = "how long ranks may take to end after SIGTERM (default: ${DEFAULT-VALUE})")
  private int graceSeconds;

  @Parameters(index = "0", paramLabel = "MAIN", description = "the main class")
  private String mainClass = "";

  @Parameters(index = "1..*", paramLabel = "ARG", arity = "0..*", description = "its arguments")
  private List<String> arguments = List.of();

  @Override
  public Integer call() {
    return LocalLauncher.run(
        LaunchConfig.of(mainClass, nprocPerNode)
            .arguments(arguments)
            .classPath(classPath)
            .jvmArguments(jvmArguments)
            .masterAddress(masterAddress)
            .masterPort(masterPort)
            .runId(runId)
            .prefixOutput(!noPrefix)
            .gracePeriod(Duration.ofSeconds(graceSeconds))
            .build());
  }
}
