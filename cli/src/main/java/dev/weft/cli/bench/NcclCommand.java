package dev.weft.cli.bench;

import dev.weft.bench.NcclBandwidth;
import dev.weft.tensor.cuda.Cuda;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code weft bench nccl}. */
@Command(
    name = "nccl",
    description = {
      "Time and bus bandwidth of collectives over the GPUs of this machine,",
      "beside those of bare NCCL calls."
    },
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class NcclCommand implements Callable<Integer> {
  @Option(
      names = "--ranks",
      paramLabel = "N",
      description = "How many GPUs, a rank each (default: all).")
  private int ranks;

  @Option(names = "--in-process", description = "Ranks are threads of this process.")
  private boolean inProcess;

  @Option(
      names = "--most",
      paramLabel = "BYTES",
      description = "The largest size (default: ${DEFAULT-VALUE}).")
  private long most = 1L << 32;

  @Mixin private Output output = new Output();

  @Override
  public Integer call() {
    Cuda.require();
    int n = ranks == 0 ? Cuda.deviceCount() : ranks;
    long least = Math.max(8, 4L * n);
    if (n < 1 || most < least) {
      throw new IllegalArgumentException(
          "--ranks is "
              + n
              + " and --most "
              + most
              + "; expected 1 or more, "
              + least
              + " or more");
    }
    return output.write(out -> NcclBandwidth.start(n, inProcess, most, out));
  }
}
