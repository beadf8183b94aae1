package dev.weft.cli.bench;

import picocli.CommandLine.Command;

/** Runs a benchmark and prints its results as JSON lines. */
@Command(
    name = "bench",
    description = "Runs a benchmark and prints JSON lines.",
    mixinStandardHelpOptions = true,
    synopsisSubcommandLabel = "BENCHMARK",
    subcommands = {
      OverheadCommand.Dispatch.class,
      OverheadCommand.Distributed.class,
      CollectivesCommand.class,
      StressCommand.class,
      TrainGptCommand.class,
      TrainGptCpuCommand.class,
      GpuHostCommand.class,
      NcclCommand.class,
      NumericsCommand.class,
      PipelineCommand.class,
      MemoryCommand.class,
      SlowLinkCommand.class,
      StoreCommand.class,
      JmhCommand.class
    })
public final class BenchCommand {
  /** The command, without a benchmark chosen. */
  public BenchCommand() {}
}
