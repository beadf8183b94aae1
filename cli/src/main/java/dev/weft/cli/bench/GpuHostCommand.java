package dev.weft.cli.bench;

import dev.weft.bench.GpuHostOverhead;
import dev.weft.bench.Rows;
import dev.weft.tensor.cuda.Cuda;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** {@code weft bench gpu-host}. */
@Command(
    name = "gpu-host",
    description = "Host cost of NCCL collectives and small operators on a GPU, in microseconds.",
    mixinStandardHelpOptions = true)
final class GpuHostCommand implements Callable<Integer> {
  @Mixin private Output output = new Output();

  @Override
  public Integer call() {
    Cuda.require();
    return output.write(
        out -> {
          GpuHostOverhead.run(new Rows(out));
          return 0;
        });
  }
}
