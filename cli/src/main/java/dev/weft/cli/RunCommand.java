package dev.weft.cli;

import com.google.common.base.Splitter;
import com.google.common.net.HostAndPort;
import dev.weft.c10d.elastic.ElasticAgent;
import dev.weft.c10d.elastic.ElasticOptions;
import dev.weft.c10d.elastic.LaunchConfig;
import dev.weft.c10d.elastic.LiveScreen;
import dev.weft.c10d.elastic.LocalLauncher;
import dev.weft.c10d.elastic.LogOptions;
import dev.weft.c10d.elastic.MpirunLauncher;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code weft run}: starts a program once a rank, as processes of this machine. */
@Command(
    name = "run",
    description = {
      "Runs a main class as several ranks on this machine, one JVM each.",
      "Ends all ranks when one fails, and exits with its code. With --nnodes or --max-restarts this"
          + " is",
      "one node of a run: ranks are started again after a failure, nodes may come and go."
    },
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class RunCommand implements Callable<Integer> {
  private static final int DEFAULT_PORT = 29_500;
  private static final List<String> RENDEZVOUS_KEYS =
      List.of("join_timeout", "last_call_timeout", "keep_alive_interval", "keep_alive_timeout");

  @Option(
      names = {"--nproc-per-node", "--nproc_per_node"},
      paramLabel = "N",
      defaultValue = "1",
      description = "how many ranks to start (default: ${DEFAULT-VALUE})")
  private int nprocPerNode;

  @Option(
      names = "--nnodes",
      paramLabel = "MIN:MAX",
      defaultValue = "1",
      description = "how many nodes, each with its own weft run, take part (default: 1)")
  private String nnodes = "";

  @Option(
      names = {"--rdzv-endpoint", "--rdzv_endpoint"},
      paramLabel = "HOST:PORT",
      defaultValue = "",
      description = {
        "where the nodes meet; the first of them on HOST serves a store there",
        "(port 29500 if none is given; needed for more than one node)"
      })
  private String endpoint = "";

  @Option(
      names = {"--max-restarts", "--max_restarts"},
      paramLabel = "K",
      defaultValue = "0",
      description = "how often failing ranks are started again (default: ${DEFAULT-VALUE})")
  private int maxRestarts;

  @Option(
      names = {"--rdzv-conf", "--rdzv_conf"},
      paramLabel = "KEY=SECONDS",
      split = ",",
      description = {
        "join_timeout (600): how long a round may take to have MIN nodes;",
        "last_call_timeout (3): how long it waits for more, up to MAX;",
        "keep_alive_interval (2): how often a node shows that it lives;",
        "keep_alive_timeout (10): how long it may be silent"
      })
  private Map<String, Double> rendezvous = Map.of();

  @Option(
      names = {"--log-dir", "--log_dir"},
      paramLabel = "DIR",
      description = "keep the output of ranks in DIR/attempt_N/RANK/stdout.log and stderr.log")
  private @Nullable Path logFolder;

  @Option(names = "--tee", description = "with --log-dir, show the output, too")
  private boolean tee;

  @Option(
      names = {"--local-ranks-filter", "--local_ranks_filter"},
      paramLabel = "RANK",
      split = ",",
      description = "show the output of these local ranks only, such as 0,2")
  private Set<Integer> shownRanks = Set.of();

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
      names = {"--run-id", "--rdzv-id", "--rdzv_id"},
      paramLabel = "ID",
      defaultValue = "none",
      description = {
        "a name for the run, by which its nodes find each other at the endpoint, and which ranks",
        "find in TORCHELASTIC_RUN_ID"
      })
  private String runId = "";

  @Option(
      names = "--no-prefix",
      description = "pass output on without \"[rank]| \" before each line")
  private boolean noPrefix;

  @Option(
      names = "--no-live",
      description = {
        "on a terminal, show no block of lines that says where the ranks are (elsewhere there is none)"
      })
  private boolean noLive;

  @Option(
      names = "--grace-period",
      paramLabel = "SECONDS",
      defaultValue = "5",
      description = "how long ranks may take to end after SIGTERM (default: ${DEFAULT-VALUE})")
  private int graceSeconds;

  @Option(
      names = "--mpi",
      description = {
        "start the ranks through mpirun, for programs that use backend mpi: Distributed.init then",
        "needs no MASTER_ADDR (WEFT_MPIRUN names another mpirun)"
      })
  private boolean mpi;

  @Option(
      names = "--mpi-arg",
      paramLabel = "ARG",
      description = "with --mpi, an argument of mpirun, such as --mpi-arg=--oversubscribe")
  private List<String> mpiArguments = List.of();

  @Parameters(index = "0", paramLabel = "MAIN", description = "the main class")
  private String mainClass = "";

  @Parameters(index = "1..*", paramLabel = "ARG", arity = "0..*", description = "its arguments")
  private List<String> arguments = List.of();

  @Override
  public Integer call() {
    LaunchConfig config = config();
    if (mpi) {
      if (!nnodes.equals("1") || maxRestarts > 0 || !endpoint.isEmpty() || logFolder != null) {
        throw new IllegalArgumentException(
            "--mpi is given with --nnodes, --max-restarts, --rdzv-endpoint or --log-dir; expected"
                + " neither: mpirun starts the ranks of all nodes, once, and has options of its own"
                + " (--mpi-arg)");
      }
      return MpirunLauncher.run(config, mpiArguments);
    }
    if (!mpiArguments.isEmpty()) {
      throw new IllegalArgumentException("--mpi-arg is given without --mpi; expected both");
    }
    ElasticOptions options = options();
    return options.maxNodes() == 1 && maxRestarts == 0 && endpoint.isEmpty()
        ? LocalLauncher.run(config)
        : ElasticAgent.run(config, options);
  }

  private LaunchConfig config() {
    LogOptions logs = LogOptions.SHOW_ALL.withLocalRanks(shownRanks);
    Path folder = logFolder;
    if (folder != null) {
      logs = logs.withFolder(folder, tee);
    } else if (tee) {
      throw new IllegalArgumentException("--tee is given without --log-dir; expected both");
    }
    LaunchConfig.Builder builder = LaunchConfig.of(mainClass, nprocPerNode);
    // bin/weft looks, since Java 17 cannot tell whether standard output alone is a terminal.
    if (Boolean.getBoolean("weft.terminal") && !noLive && !mpi) {
      builder.live(
          new LiveScreen(
              new FileOutputStream(FileDescriptor.out), new FileOutputStream(FileDescriptor.err)));
    }
    return builder
        .arguments(arguments)
        .classPath(classPath)
        .jvmArguments(jvmArguments)
        .masterAddress(masterAddress)
        .masterPort(masterPort)
        .runId(runId)
        .prefixOutput(!noPrefix)
        .logs(logs)
        .gracePeriod(Duration.ofSeconds(graceSeconds))
        .build();
  }

  private ElasticOptions options() {
    var parts = Splitter.on(':').splitToList(nnodes);
    int min = nodes(parts.get(0));
    int max = parts.size() == 1 ? min : nodes(parts.get(parts.size() - 1));
    if (parts.size() > 2) {
      throw new IllegalArgumentException("--nnodes is '" + nnodes + "'; expected N or MIN:MAX");
    }
    if (max > 1 && endpoint.isEmpty()) {
      throw new IllegalArgumentException(
          "--nnodes is '%s' without --rdzv-endpoint; expected HOST:PORT, the same for all nodes"
              .formatted(nnodes));
    }
    HostAndPort place =
        endpoint.isEmpty() ? HostAndPort.fromParts("127.0.0.1", 0) : parseEndpoint();
    var unknown = new TreeSet<>(rendezvous.keySet());
    unknown.removeAll(RENDEZVOUS_KEYS);
    if (!unknown.isEmpty()) {
      throw new IllegalArgumentException(
          "--rdzv-conf has " + unknown + "; expected some of " + RENDEZVOUS_KEYS);
    }
    return ElasticOptions.of(min, max, place.getHost(), place.getPort())
        .withMaxRestarts(maxRestarts)
        .withJoining(seconds("join_timeout", 600), seconds("last_call_timeout", 3))
        .withHeartbeat(seconds("keep_alive_interval", 2), seconds("keep_alive_timeout", 10));
  }

  private int nodes(String text) {
    try {
      return Integer.parseInt(text);
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException("--nnodes is '" + nnodes + "'; expected N or MIN:MAX", e);
    }
  }

  private HostAndPort parseEndpoint() {
    try {
      HostAndPort place = HostAndPort.fromString(endpoint).withDefaultPort(DEFAULT_PORT);
      if (!place.getHost().isEmpty()) {
        return place;
      }
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "--rdzv-endpoint is '" + endpoint + "'; expected HOST:PORT", e);
    }
    throw new IllegalArgumentException("--rdzv-endpoint is '" + endpoint + "'; expected HOST:PORT");
  }

  private Duration seconds(String key, double unlessGiven) {
    return Duration.ofMillis(Math.round(1000 * rendezvous.getOrDefault(key, unlessGiven)));
  }
}
