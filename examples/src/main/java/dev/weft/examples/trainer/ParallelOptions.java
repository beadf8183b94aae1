package dev.weft.examples.trainer;

import dev.weft.examples.reference.DecoderConfig;
import dev.weft.parallel.pipeline.Schedule;
import dev.weft.parallel.pipeline.Timeline;
import dev.weft.tensor.Device;
import dev.weft.tensor.cuda.Cuda;
import java.util.Arrays;
import java.util.Locale;
import picocli.CommandLine.Option;

/** How the work is spread over ranks. */
final class ParallelOptions {
  @Option(
      names = "--mesh",
      paramLabel = "dp=N,fsdp=N,pp=N,tp=N",
      description =
          "ranks of data, fully sharded, pipeline and tensor parallelism; a size left out is 1, and "
              + "one may be * for the ranks that the others leave (default: dp=*)")
  String mesh = "";

  @Option(
      names = "--sequence-parallel",
      description = "with tp, cut activations outside attention and feed-forward by positions")
  boolean sequenceParallel;

  @Option(
      names = "--microbatches",
      paramLabel = "N",
      description =
          "pieces into which a replica's rows are cut: gradients are accumulated over them, and a "
              + "pipeline works on them in turn (default: 1, or as many as pipeline ranks)")
  int microbatches;

  @Option(
      names = "--schedule",
      paramLabel = "NAME",
      description = "of the pipeline, such as gpipe, 1f1b or interleaved (default: 1f1b)")
  String schedule = "1f1b";

  @Option(
      names = "--stages-per-rank",
      paramLabel = "N",
      description = "stages of the pipeline on each rank (default: ${DEFAULT-VALUE})")
  int stagesPerRank = 1;

  @Option(
      names = "--device",
      paramLabel = "cpu|cuda",
      description = "where to train (default: ${DEFAULT-VALUE})")
  String device = "cpu";

  /**
   * The sizes.
   *
   * @param world the ranks there are, or 0 where the mesh decides
   */
  ParallelDims dims(int world) {
    return ParallelDims.parse(mesh.isEmpty() ? (world == 0 ? "dp=1" : "dp=*") : mesh, world);
  }

  int microbatches(ParallelDims dims) {
    return microbatches == 0 ? dims.pp() : microbatches;
  }

  /** The schedule by its name; {@code 1f1b} stands for {@code ONE_F_ONE_B}. */
  Schedule schedule() {
    String name = schedule.toUpperCase(Locale.ROOT).replace('-', '_');
    for (Schedule s : Schedule.values()) {
      if (s.name().equals(name.equals("1F1B") ? "ONE_F_ONE_B" : name)) {
        return s;
      }
    }
    throw new IllegalArgumentException(
        "--schedule '"
            + schedule
            + "'; expected 1f1b or one of "
            + Arrays.toString(Schedule.values()).toLowerCase(Locale.ROOT));
  }

  /** This rank's device. */
  Device device() {
    return device.equals("cuda") ? Device.cuda(Cuda.currentDevice()) : Device.CPU;
  }

  /** What the pipeline's schedule looks like. */
  Timeline timeline(ParallelDims dims) {
    return schedule().timeline(dims.pp(), stagesPerRank, microbatches(dims));
  }

  /** Refuses what does not divide. */
  void check(ParallelDims dims, DecoderConfig model, int batch) {
    if (!device.equals("cpu") && !device.equals("cuda")) {
      throw new IllegalArgumentException("--device '" + device + "'; expected cpu or cuda");
    }
    if (microbatches < 0 || stagesPerRank < 1) {
      throw new IllegalArgumentException(
          "--microbatches "
              + microbatches
              + " with --stages-per-rank "
              + stagesPerRank
              + "; expected 1 or more of each");
    }
    divides(dims, "tp", dims.tp(), "--heads", model.nHeads());
    divides(dims, "tp", dims.tp(), "--kv-heads", model.nKvHeads());
    if (sequenceParallel) {
      divides(dims, "tp", dims.tp(), "--seq", model.seq());
      if (dims.tp() == 1) {
        throw new IllegalArgumentException(
            "--sequence-parallel with --mesh " + dims + "; expected tp of 2 or more");
      }
    }
    int stages = dims.pp() * stagesPerRank;
    if (stages > model.nLayers()) {
      throw new IllegalArgumentException(
          "--mesh %s with --stages-per-rank %d makes %d stages; expected at most the %d of --layers"
              .formatted(dims, stagesPerRank, stages, model.nLayers()));
    }
    if (model.tied() && stages > 1) {
      throw new IllegalArgumentException(
          "--tied with --mesh "
              + dims
              + "; expected one stage, since embedding and output lie in the first and the last");
    }
    int pieces = dims.replicas() * microbatches(dims);
    if (batch % pieces != 0) {
      throw new IllegalArgumentException(
          "--batch %d with --mesh %s and --microbatches %d; expected a multiple of %d"
              .formatted(batch, dims, microbatches(dims), pieces));
    }
    Timeline unused = timeline(dims);
  }

  private static void divides(ParallelDims dims, String dim, int size, String name, int divided) {
    if (divided % size != 0) {
      throw new IllegalArgumentException(
          "--mesh %s with %s %d; expected a multiple of %s=%d"
              .formatted(dims, name, divided, dim, size));
    }
  }
}
