package dev.weft.cli.doctor;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Says what of Weft works on this machine, and what to do about the rest. */
@Command(
    name = "doctor",
    description = {
      "Checks what works on this machine and says how to mend what does not.",
      "Exits with 1 if something is broken; what is missing or slow is no failure."
    },
    mixinStandardHelpOptions = true)
public final class DoctorCommand implements Callable<Integer> {
  @Option(
      names = "--world",
      paramLabel = "HOST",
      split = ",",
      description =
          "also meets the doctors of these hosts, started there with the same list, and measures the "
              + "network between each two")
  private List<String> hosts = List.of();

  @Option(
      names = "--rank",
      paramLabel = "N",
      defaultValue = "-1",
      description = "which of the hosts this one is, from 0 (default: found by its address)")
  private int rank;

  @Option(
      names = "--port",
      paramLabel = "PORT",
      defaultValue = "29500",
      description = "where the hosts meet on the first of them (default: ${DEFAULT-VALUE})")
  private int port;

  @Option(
      names = "--timeout",
      paramLabel = "SECONDS",
      defaultValue = "60",
      description = "how long to wait for the other hosts (default: ${DEFAULT-VALUE})")
  private int timeout;

  @Spec private CommandSpec spec = CommandSpec.create();

  private final Map<Finding.State, Integer> counts = new EnumMap<>(Finding.State.class);

  /** For picocli to fill. */
  public DoctorCommand() {}

  @Override
  public Integer call() throws IOException {
    WorldCheck world = hosts.isEmpty() ? null : world();
    new LibraryChecks(System.getenv()).all().forEach(this::tell);
    new MachineChecks(Path.of("/"), Runtime.getRuntime().maxMemory()).all().forEach(this::tell);
    if (world != null) {
      world.run(this::tell);
    }
    int broken = count(Finding.State.BROKEN);
    PrintWriter out = spec.commandLine().getOut();
    out.printf(
        "%d work, %d not there, %d to look at, %d broken%n",
        count(Finding.State.OK), count(Finding.State.NO), count(Finding.State.WARN), broken);
    out.flush();
    return broken > 0 ? 1 : 0;
  }

  private WorldCheck world() throws IOException {
    if (hosts.size() < 2 || rank >= hosts.size() || timeout < 1) {
      throw new IllegalArgumentException(
          "--world "
              + String.join(",", hosts)
              + " with --rank "
              + rank
              + " and --timeout "
              + timeout
              + "; expected two hosts or more, a rank below their number and a second or more");
    }
    int own = rank >= 0 ? rank : WorldCheck.rankOf(hosts);
    return new WorldCheck(hosts, own, port, Duration.ofSeconds(timeout));
  }

  private int count(Finding.State state) {
    return counts.getOrDefault(state, 0);
  }

  private void tell(Finding f) {
    counts.merge(f.state(), 1, Integer::sum);
    PrintWriter out = spec.commandLine().getOut();
    out.printf("%-7s %-16s %s%n", f.state().name().toLowerCase(Locale.ROOT), f.subject(), f.text());
    if (f.mend() != null) {
      out.printf("%24s mend: %s%n", "", f.mend());
    }
    out.flush();
  }
}
