package dev.weft.c10d;

import dev.weft.c10d.debug.GroupLog;
import dev.weft.c10d.debug.RecordedCall;
import dev.weft.c10d.metrics.RankMetrics;
import dev.weft.tensor.StridedTensor;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Runs one call and tells the flight recorder of it.
 *
 * @param kind what is called
 * @param group in which group
 * @param peer the root or the other side, or null
 * @param outputs what it writes
 * @param inputs what it reads
 * @param options how it is called
 */
record CallRecording(
    CollectiveOps.Kind kind,
    ProcessGroup group,
    @Nullable Integer peer,
    List<StridedTensor> outputs,
    List<StridedTensor> inputs,
    CollectiveOptions options) {

  Work run(Supplier<Work> body) {
    GroupLog log = group.log();
    if (log == null || isMeta()) {
      return body.get();
    }
    RecordedCall call = record(log);
    Work work;
    try {
      if (!options.async()) {
        call.start();
      }
      work = body.get();
    } catch (RuntimeException | Error e) {
      failed(group, call, e);
      throw e;
    }
    group.context().failures().watch(!options.async());
    // Says nothing about the memory: the record holds no tensor, and the work not the record.
    ProcessGroup of = group;
    work.whenEnded(failure -> ended(of, call, failure));
    return work;
  }

  private RecordedCall record(GroupLog log) {
    long timeout = (options.timeout() == null ? group.timeout() : options.timeout()).toMillis();
    if (!kind.isMessage()) {
      return log.collective(kind.recorded(), outputs, inputs, timeout);
    }
    int other = peer == null ? ProcessGroup.ANY_SOURCE : peer;
    return log.message(kind.recorded(), other, outputs.isEmpty() ? inputs : outputs, timeout);
  }

  private static void ended(ProcessGroup group, RecordedCall call, @Nullable Throwable failure) {
    if (failure == null) {
      call.complete();
      count(group, call, true);
    } else {
      failed(group, call, failure);
    }
  }

  private static void failed(ProcessGroup group, RecordedCall call, Throwable failure) {
    Throwable cause =
        failure instanceof java.util.concurrent.CompletionException && failure.getCause() != null
            ? failure.getCause()
            : failure;
    call.fail(cause);
    count(group, call, false);
    if (cause instanceof DistributedException) {
      group.context().failures().failed(group, cause);
    }
  }

  private static void count(ProcessGroup group, RecordedCall call, boolean well) {
    RankMetrics metrics = group.context().metrics();
    if (metrics != null) {
      metrics.ended(call, well);
    }
  }

  private boolean isMeta() {
    return (!outputs.isEmpty() && outputs.get(0).device().isMeta())
        || (!inputs.isEmpty() && inputs.get(0).device().isMeta());
  }
}
