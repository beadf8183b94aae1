package dev.weft.bench;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.elastic.LaunchConfig;
import dev.weft.c10d.elastic.LocalLauncher;
import dev.weft.c10d.host.HostOptions;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Runs {@link CollectiveBenchmark} between threads of this JVM or between processes it starts. */
public final class CollectiveRuns {
  /** How the ranks reach each other. */
  public enum Transport {
    /** Threads of one JVM. */
    LOCAL,
    /** Processes, over TCP on loopback. */
    TCP,
    /** Processes, through shared memory. */
    SHM;

    String impl() {
      return "weft-" + name().toLowerCase(Locale.ROOT);
    }
  }

  private CollectiveRuns() {}

  /**
   * Measures one transport with so many ranks.
   *
   * @param sizes of the vectors, in bytes: multiples of 4 times the number of ranks
   * @param warmUpSeconds of all operations, before they are measured
   * @param algorithms named ones, for TCP
   * @param out where the rows are printed
   */
  public static void run(
      Transport transport,
      int ranks,
      List<Long> sizes,
      double warmUpSeconds,
      HostOptions algorithms,
      PrintStream out) {
    if (transport != Transport.TCP && !algorithms.equals(HostOptions.DEFAULT)) {
      throw new IllegalArgumentException(
          "algorithms are "
              + algorithms.text()
              + " for transport "
              + transport
              + ", which exchanges no messages; expected TCP");
    }
    for (long size : sizes) {
      if (size <= 0 || size % (4L * ranks) != 0 || size / 4 > Integer.MAX_VALUE) {
        throw new IllegalArgumentException(
            "size " + size + "; expected a multiple of " + 4 * ranks + " below 2^33");
      }
    }
    if (transport == Transport.LOCAL) {
      LocalWorld.run(
          ranks,
          rank -> {
            Rows rows = rank == 0 ? new Rows(transport.impl(), out) : null;
            new CollectiveBenchmark(Distributed.world(), rows, warmUpSeconds).run(sizes);
          });
      return;
    }
    List<String> arguments = new ArrayList<>();
    arguments.add(transport.impl());
    arguments.add(String.valueOf(warmUpSeconds));
    sizes.forEach(s -> arguments.add(String.valueOf(s)));
    launch(transport, ranks, arguments, algorithms, out);
  }

  /**
   * Calls collectives of all kinds for a while and checks their results, see {@link
   * CollectiveStress}; ends with an exception where one is wrong or does not end in a minute.
   *
   * @param out where the number of calls is printed
   */
  public static void stress(Transport transport, int ranks, double seconds, PrintStream out) {
    if (transport == Transport.LOCAL) {
      LocalWorld.of(ranks)
          .timeout(CollectiveRank.STALL)
          .run(
              rank ->
                  CollectiveRank.stress(
                      Distributed.world(),
                      seconds,
                      rank == 0 ? new Rows(transport.impl(), out) : null));
    } else {
      launch(
          transport,
          ranks,
          List.of(CollectiveRank.STRESS, transport.impl(), String.valueOf(seconds)),
          HostOptions.DEFAULT,
          out);
    }
  }

  private static void launch(
      Transport transport,
      int ranks,
      List<String> arguments,
      HostOptions algorithms,
      PrintStream out) {
    Map<String, String> variables = new HashMap<>();
    variables.put("WEFT_HOST_TRANSPORT", transport.name());
    if (!algorithms.equals(HostOptions.DEFAULT)) {
      variables.put(HostOptions.VARIABLE, algorithms.text());
    }
    int code =
        LocalLauncher.run(
            LaunchConfig.of(CollectiveRank.class.getName(), ranks)
                .arguments(arguments)
                .jvmArguments(ManagementFactory.getRuntimeMXBean().getInputArguments())
                .environment(variables)
                .prefixOutput(false)
                .output(out, System.err)
                .build());
    if (code != 0) {
      throw new DistributedException("a rank of the benchmark ended with code " + code);
    }
  }
}
