package dev.weft.bench;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.nn.Module;
import dev.weft.parallel.pipeline.Pipeline;
import dev.weft.parallel.pipeline.Schedule;
import dev.weft.parallel.pipeline.Timeline;
import dev.weft.parallel.pipeline.Trace;
import dev.weft.tensor.DType;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Op;
import dev.weft.tensor.op.Reductions;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * The bubble of pipeline schedules, measured against theory. A stage computes nothing: its forward,
 * and each of the two parts of its backward, wait for one unit of time, so that any number of ranks
 * fits on any number of cores and the schedule is measured, not the arithmetic. Order, messages and
 * autograd are the real ones.
 */
public final class PipelineBubble {
  private static final int ROUNDS = 3;

  private final Rows rows;
  private final long unitNanos;
  private final @Nullable PrintStream drawings;

  /** One measured setting. */
  private record Setting(Schedule schedule, int ranks, int perRank, int microbatches) {}

  /**
   * A benchmark.
   *
   * @param unit how long a forward of one microbatch takes on a rank, over all its stages
   * @param drawings where measured timelines are drawn, or null not to
   */
  public PipelineBubble(Rows rows, Duration unit, @Nullable PrintStream drawings) {
    this.rows = rows;
    this.unitNanos = unit.toNanos();
    this.drawings = drawings;
  }

  /** Measures all schedules over 2 and 4 ranks. */
  public void run() {
    for (int ranks : new int[] {2, 4}) {
      for (int microbatches : new int[] {ranks, 2 * ranks, 4 * ranks}) {
        measure(new Setting(Schedule.GPIPE, ranks, 1, microbatches));
        measure(new Setting(Schedule.ONE_F_ONE_B, ranks, 1, microbatches));
        measure(new Setting(Schedule.INTERLEAVED, ranks, 2, microbatches));
        measure(new Setting(Schedule.ZB_H1, ranks, 1, microbatches));
      }
    }
  }

  /**
   * Measures one schedule.
   *
   * @return the median bubble of some steps
   */
  public double measure(Schedule schedule, int ranks, int perRank, int microbatches) {
    return measure(new Setting(schedule, ranks, perRank, microbatches));
  }

  private double measure(Setting s) {
    Timeline theory = s.schedule.timeline(s.ranks, s.perRank, s.microbatches);
    List<Timeline> measured = new ArrayList<>(timelines(s));
    measured.sort(Comparator.comparingDouble(Timeline::bubble));
    Timeline median = measured.get(measured.size() / 2);
    add(s, "theory", theory.bubble());
    add(s, "measured", median.bubble());
    if (drawings != null) {
      drawings.printf(
          "%n%s, %d ranks of %d stages, %d microbatches%n%s",
          s.schedule, s.ranks, s.perRank, s.microbatches, median);
    }
    return median.bubble();
  }

  private void add(Setting s, String source, double bubble) {
    rows.addValue(
        "pipeline_bubble",
        100 * bubble,
        "%",
        "schedule",
        s.schedule.name(),
        "ranks",
        s.ranks,
        "stages_per_rank",
        s.perRank,
        "microbatches",
        s.microbatches,
        "source",
        source);
  }

  /** Steps after one in which shapes are agreed on. */
  private List<Timeline> timelines(Setting s) {
    long each = unitNanos / s.perRank;
    List<List<Trace>> ranks =
        LocalWorld.call(
            s.ranks,
            rank -> {
              List<Module> stages = new ArrayList<>();
              for (int v = 0; v < s.perRank; v++) {
                stages.add(new TimedStage(each));
              }
              List<Trace> traces = new ArrayList<>();
              Trace trace = new Trace();
              Pipeline pipeline =
                  Pipeline.of(
                          initDeviceMesh("cpu", dim("pp", s.ranks)),
                          stages,
                          s.schedule,
                          s.microbatches,
                          (y, target) -> Reductions.mean(y))
                      .withTrace(trace);
              for (int round = 0; round <= ROUNDS; round++) {
                trace.clear();
                Distributed.barrier().await();
                try (TensorScope scope = TensorScope.open()) {
                  // The first stage has both parts of backward, as the others have.
                  Tensor x = Creation.zeros(DType.FLOAT32, s.microbatches, 1).requiresGrad(true);
                  Tensor unused = pipeline.step(x, x);
                }
                stages.forEach(Module::zeroGrad);
                if (round > 0) {
                  traces.add(trace.copy());
                }
              }
              return traces;
            });
    List<Timeline> all = new ArrayList<>();
    for (int round = 0; round < ROUNDS; round++) {
      List<Trace> traces = new ArrayList<>();
      for (List<Trace> ofRank : ranks) {
        traces.add(ofRank.get(round));
      }
      all.add(Timeline.measured(traces, Duration.ofNanos(each)));
    }
    return all;
  }

  /** A stage of one weight whose three parts take a given time each. */
  private static final class TimedStage extends Module {
    private static final Op WAIT =
        Op.function(
                "timed_stage",
                (in, a) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
                (in, out, a) -> {
                  sleep(a.longAt(0));
                  Regions.zero(out[0]);
                })
            .gradient(
                Op.Saves.INPUTS,
                (ctx, g) -> {
                  @Nullable Tensor[] gradients = new Tensor[2];
                  for (int i = 0; i < 2; i++) {
                    if (ctx.needs(i)) {
                      sleep(ctx.attrs().longAt(0));
                      gradients[i] = Creation.zerosLike(ctx.input(i));
                    }
                  }
                  return gradients;
                });

    private final long nanos;

    TimedStage(long nanos) {
      this.nanos = nanos;
      Tensor unused = registerParameter("weight", Creation.zeros(DType.FLOAT32, 1));
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      return Dispatcher.call(WAIT, Attrs.of(nanos), inputs[0], parameter("weight"));
    }

    private static void sleep(long nanos) {
      long end = System.nanoTime() + nanos;
      for (long left = nanos; left > 0; left = end - System.nanoTime()) {
        LockSupport.parkNanos(left);
      }
    }
  }
}
