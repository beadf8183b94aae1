package dev.weft.cli;

import com.google.common.base.Throwables;
import dev.weft.c10d.DistributedException;
import dev.weft.cli.bench.BenchCommand;
import dev.weft.cli.doctor.DoctorCommand;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** The {@code weft} command. */
@Command(
    name = "weft",
    description = "Hybrid-parallel training for the JVM.",
    mixinStandardHelpOptions = true,
    version = "weft 0.1.0",
    synopsisSubcommandLabel = "COMMAND")
public final class Weft {
  private Weft() {}

  /**
   * Runs a command and ends the process with its exit code: 0 for success, 1 for a failure, 2 for
   * bad usage.
   *
   * @param args the command and its arguments
   */
  public static void main(String[] args) {
    System.exit(commandLine().execute(args));
  }

  static CommandLine commandLine() {
    var commands = new CommandLine(new Weft());
    // What follows the main class is that program's, whatever it looks like.
    commands.addSubcommand(new CommandLine(new RunCommand()).setStopAtPositional(true));
    commands.addSubcommand(new StoreCommand());
    commands.addSubcommand(new FlightRecorderCommand());
    commands.addSubcommand(new ConformanceCommand());
    commands.addSubcommand(new DemoCommand());
    commands.addSubcommand(
        new CommandLine(new TrainCommand()).setCaseInsensitiveEnumValuesAllowed(true));
    commands.addSubcommand(new TraceCommand());
    commands.addSubcommand(new ReportCommand());
    commands.addSubcommand(new DoctorCommand());
    commands.addSubcommand(new BenchCommand());
    commands.setExecutionExceptionHandler(
        (failure, command, parsed) -> {
          if (!(failure instanceof DistributedException)
              && !(failure instanceof IllegalArgumentException)
              && !(failure instanceof UnsupportedOperationException)) {
            command.getErr().print(Throwables.getStackTraceAsString(failure));
          }
          command
              .getErr()
              .println(command.getCommandSpec().qualifiedName() + ": " + failure.getMessage());
          return failure instanceof IllegalArgumentException
              ? CommandLine.ExitCode.USAGE
              : CommandLine.ExitCode.SOFTWARE;
        });
    return commands;
  }
}
