package dev.weft.examples.trainer;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.RunStatus;
import dev.weft.parallel.pipeline.Timeline;
import dev.weft.profiler.Profiler;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** A run from its start, or its newest checkpoint, to its end. One rank's; all call alike. */
final class TrainingRun implements AutoCloseable {
  private final TrainOptions options;
  private final PrintStream out;
  private final Trainer trainer;
  private final @Nullable TrainingCheckpoint checkpoint;
  private final boolean speaks = Distributed.rank() == 0;

  TrainingRun(TrainOptions options, PrintStream out) {
    this.options = options;
    this.out = out;
    this.trainer = new Trainer(options);
    Path folder = options.run.out;
    this.checkpoint =
        folder == null
            ? null
            : new TrainingCheckpoint(
                folder.resolve("checkpoints"),
                trainer.model(),
                trainer.optimizer(),
                trainer.identity());
  }

  List<LossRow> train() {
    TrainingCheckpoint.Position start =
        checkpoint == null ? new TrainingCheckpoint.Position(0, 0) : checkpoint.restore(out);
    greet(start);
    Path folder = options.run.out;
    LossLog log =
        folder == null || !speaks ? null : LossLog.open(folder.resolve("losses.csv"), start.step());
    int steps = options.optimizer.steps;
    int stop = options.run.stopAfter;
    long last = stop == 0 ? steps : Math.min(stop, steps);
    List<LossRow> rows = new ArrayList<>();
    try (Profiler profiler = profiler()) {
      train(start, last, log, profiler, rows);
    }
    if (speaks && rows.isEmpty()) {
      out.printf("nothing to do: step %d of %d is done%n", start.step(), last);
    }
    return rows;
  }

  private @Nullable Profiler profiler() {
    Path traces = options.run.profile;
    return traces == null ? null : Profiler.start(traces, options.run.schedule());
  }

  private void train(
      TrainingCheckpoint.Position start,
      long last,
      @Nullable LossLog log,
      @Nullable Profiler profiler,
      List<LossRow> rows) {
    int steps = options.optimizer.steps;
    long samples = start.samples();
    for (long step = start.step(); step < last; step++) {
      LossRow row = trainer.step(step, samples);
      if (profiler != null) {
        profiler.step();
      }
      samples += options.optimizer.batch;
      trainer.health().afterStep(step + 1, out);
      RunStatus.report(row.step(), row.loss(), row.tokensPerSecond());
      if (step + 1 == steps || isTime(step + 1, options.run.evalEvery)) {
        row = row.withEvalLoss(trainer.evaluate());
      }
      rows.add(row);
      if (log != null) {
        log.add(row);
      }
      if (speaks && (step + 1 == last || isTime(step + 1, options.run.logEvery))) {
        say(row);
      }
      if (checkpoint != null
          && (step + 1 == last || isTime(step + 1, options.run.checkpointEvery))) {
        checkpoint.save(new TrainingCheckpoint.Position(step + 1, samples), options.run.keep);
        report(log);
      }
    }
  }

  private static boolean isTime(long step, int every) {
    return every > 0 && step % every == 0;
  }

  private void greet(TrainingCheckpoint.Position start) {
    if (!speaks) {
      return;
    }
    out.printf(
        Locale.ROOT,
        "%,d parameters on %d ranks, %s%s%n",
        trainer.parameterCount(),
        Distributed.worldSize(),
        options.dims(Distributed.worldSize()),
        options.parallel.sequenceParallel ? ", sequence parallel" : "");
    if (start.step() > 0) {
      out.printf("resumed after step %d, sample %d%n", start.step(), start.samples());
    }
  }

  private void say(LossRow row) {
    Double eval = row.evalLoss();
    out.printf(
        Locale.ROOT,
        "step %d/%d  loss %.6f  grad norm %.4f  lr %.2e  %.0f tokens/s%s%n",
        row.step(),
        options.optimizer.steps,
        row.loss(),
        row.gradNorm(),
        row.learningRate(),
        row.tokensPerSecond(),
        eval == null ? "" : String.format(Locale.ROOT, "  held out %.6f", eval));
  }

  private void report(@Nullable LossLog log) {
    Path folder = options.run.out;
    if (log == null || folder == null || log.rows().isEmpty()) {
      return;
    }
    ParallelDims dims = options.dims(Distributed.worldSize());
    RunRecord record =
        new RunRecord(
            "Training of a language model",
            String.format(
                Locale.ROOT,
                "%,d parameters on %d ranks, %s",
                trainer.parameterCount(),
                dims.ranks(),
                dims),
            options.values(),
            options.optimizer.clip,
            options.optimizer.steps,
            dims.sizes(),
            RunRecord.placements(trainer.model().namedParameters()),
            RunRecord.replicatedUntilNow());
    record.write(folder);
    Report report =
        new Report(
            record.title(),
            record.subtitle(),
            log.rows(),
            record.settings(),
            record.clip(),
            record.steps());
    if (dims.pp() > 1) {
      Timeline timeline = options.parallel.timeline(dims);
      Report unused =
          report.text(
              String.format(
                  Locale.ROOT,
                  "Pipeline: %s, a bubble of %.1f %%",
                  options.parallel.schedule,
                  100 * timeline.bubble()),
              timeline.toString());
    }
    report.write(folder.resolve("report.html"));
  }

  @Override
  public void close() {
    trainer.close();
  }
}
