package dev.weft.c10d.nccl;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.GroupOptions;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.c10d.World;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaEvent;
import dev.weft.tensor.cuda.CudaFills;
import dev.weft.tensor.cuda.CudaSleep;
import dev.weft.tensor.cuda.CudaStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * When an operation of NCCL is "done": host time and completion of four ways to wait behind a sleep
 * of the GPU of about 50 ms and an all-reduce of 16 MiB. Prints the rows of {@code
 * gpu_work_semantics.py} as JSON lines, and a table.
 *
 * <p>Arguments: {@code --ranks N} (processes that share the GPU; 1), {@code --millis N} of the
 * sleep (50).
 */
public final class WorkSemantics {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int SAMPLES = 7;
  private static final int WARM = 2;

  private final int rank;
  private final int size;
  private final int device = Cuda.currentDevice();
  private final long sleepNanos;

  private WorkSemantics(int rank, int size, long sleepNanos) {
    this.rank = rank;
    this.size = size;
    this.sleepNanos = sleepNanos;
  }

  /** One repetition. */
  private record Sample(
      boolean futureDone,
      boolean completedAfterEnqueue,
      boolean completedAfterAction,
      @Nullable Boolean freeStreamFirst,
      double enqueueMicros,
      double actionMicros,
      double syncMicros,
      boolean correct,
      boolean otherStream) {}

  /** Starts the ranks, or is one. */
  public static void main(String[] args) throws IOException, InterruptedException {
    int ranks = 1;
    long sleepNanos = 50_000_000;
    boolean child = false;
    for (int i = 0; i < args.length; i++) {
      switch (args[i]) {
        case "--ranks" -> ranks = Integer.parseInt(args[++i]);
        case "--millis" -> sleepNanos = 1_000_000 * Long.parseLong(args[++i]);
        case "--child" -> child = true;
        default -> throw new IllegalArgumentException("argument " + args[i] + " is unknown");
      }
    }
    if (!child && ranks > 1) {
      System.exit(start(ranks, args));
    }
    try (World world = Distributed.init(InitOptions.DEFAULT.withBackend("cpu:host,cuda:nccl"))) {
      Cuda.setDevice(world.rank() % Cuda.deviceCount());
      new WorkSemantics(world.rank(), world.size(), sleepNanos).run(world.group());
    }
  }

  private static int start(int ranks, String[] args) throws IOException, InterruptedException {
    List<String> arguments = new ArrayList<>(List.of(args));
    arguments.add("--child");
    int worst = 0;
    try (RankProcesses world =
        RankProcesses.start(ranks, WorkSemantics.class, arguments, Map.of())) {
      for (RankProcesses.Rank r : world.ranks) {
        String said = r.end(600);
        worst = Math.max(worst, r.process.exitValue());
        if (r == world.ranks.get(0) || r.process.exitValue() != 0) {
          System.out.println(said);
        }
      }
    }
    return worst;
  }

  private void run(ProcessGroup all) throws JsonProcessingException {
    StringBuilder table =
        new StringBuilder(
            "\n| mode | enqueue us | action us | sync us | future done | completed after enqueue |"
                + " after action | free stream first | correct |\n| --- | --: | --: | --: | --: |"
                + " --: | --: | --: | --: |\n");
    for (String mode : List.of("none", "future", "wait", "blocking")) {
      NcclOptions options = NcclOptions.fromEnvironment().withBlockingWait(mode.equals("blocking"));
      ProcessGroup g =
          Distributed.newGroup(
              all.ranks(), GroupOptions.DEFAULT.withBackend("nccl").withBackendOptions(options));
      Map<String, Object> row = row(mode, samples(g, mode));
      g.destroy();
      if (rank == 0) {
        System.out.println(JSON.writeValueAsString(row));
        line(table, mode, row);
      }
    }
    if (rank == 0) {
      System.out.println(table);
    }
  }

  private static void line(StringBuilder table, String mode, Map<String, Object> row) {
    table.append("| ").append(mode);
    for (String column :
        List.of(
            "enqueue_us",
            "action_us",
            "sync_us",
            "future_done_after_enqueue",
            "completed_after_enqueue",
            "completed_after_action",
            "free_stream_first",
            "correct")) {
      Object value = row.getOrDefault(column, "");
      table.append(" | ").append(value instanceof Double d ? Math.round(d * 10) / 10.0 : value);
    }
    table.append(" |\n");
  }

  private List<Sample> samples(ProcessGroup g, String mode) {
    float[] ones = new float[4 << 20];
    Arrays.fill(ones, 1);
    StridedTensor x = (StridedTensor) Tensor.of(ones, ones.length).to(Device.cuda(device));
    Work unused = g.allReduce(x, ReduceOp.SUM);
    Cuda.synchronize(device);
    CudaStream free = CudaStream.fromPool(device, false);
    List<Sample> samples = new ArrayList<>();
    for (int i = 0; i < SAMPLES; i++) {
      try (TensorScope scope = TensorScope.open()) {
        samples.add(sample(g, mode, x, free));
      }
    }
    x.close();
    return samples.subList(WARM, SAMPLES);
  }

  private Sample sample(ProcessGroup g, String mode, StridedTensor x, CudaStream free) {
    CudaFills.fill(x, rank + 1);
    Cuda.synchronize(device);
    long begin = System.nanoTime();
    CudaSleep.nanos(device, sleepNanos);
    Work work = g.allReduce(x, ReduceOp.SUM, CollectiveOptions.ASYNC);
    var future = work.future();
    double enqueue = (System.nanoTime() - begin) / 1e3;
    boolean futureDone = future.isDone();
    boolean completed = work.isCompleted();
    boolean otherStream = ((NcclWork) work).stream() != CudaStream.current(device);
    begin = System.nanoTime();
    if (mode.equals("future")) {
      List<Tensor> unused = future.join();
    } else if (!mode.equals("none")) {
      work.await();
    }
    double action = (System.nanoTime() - begin) / 1e3;
    boolean after = work.isCompleted();
    @Nullable Boolean freeFirst = null;
    if (mode.equals("wait")) {
      try (CudaStream.InUse unused = free.use();
          CudaEvent event = new CudaEvent(device, false)) {
        CudaSleep.nanos(device, 1);
        event.record(free).synchronize();
        freeFirst = !work.isCompleted();
      }
    }
    begin = System.nanoTime();
    Cuda.synchronize(device);
    double sync = (System.nanoTime() - begin) / 1e3;
    double expected = size * (size + 1) / 2.0;
    boolean correct = Arrays.stream(x.toDoubleArray()).allMatch(v -> v == expected);
    return new Sample(
        futureDone, completed, after, freeFirst, enqueue, action, sync, correct, otherStream);
  }

  private Map<String, Object> row(String mode, List<Sample> samples) {
    Map<String, Object> row = new LinkedHashMap<>();
    row.put("bench", "gpu_work_semantics");
    row.put("impl", "weft");
    row.put("params", Map.of("ranks", size, "mode", mode));
    row.put("future_done_after_enqueue", share(samples, s -> s.futureDone() ? 1 : 0));
    row.put("completed_after_enqueue", share(samples, s -> s.completedAfterEnqueue() ? 1 : 0));
    row.put("completed_after_action", share(samples, s -> s.completedAfterAction() ? 1 : 0));
    if (mode.equals("wait")) {
      row.put(
          "free_stream_first",
          share(samples, s -> Boolean.TRUE.equals(s.freeStreamFirst()) ? 1 : 0));
    }
    row.put("enqueue_us", median(samples, Sample::enqueueMicros));
    row.put("action_us", median(samples, Sample::actionMicros));
    row.put("sync_us", median(samples, Sample::syncMicros));
    row.put("correct", share(samples, s -> s.correct() ? 1 : 0));
    row.put("nccl_stream_apart", share(samples, s -> s.otherStream() ? 1 : 0));
    return row;
  }

  private static double share(List<Sample> samples, ToDoubleFunction<Sample> of) {
    return samples.stream().mapToDouble(of).average().orElse(0);
  }

  private static double median(List<Sample> samples, ToDoubleFunction<Sample> of) {
    double[] sorted = samples.stream().mapToDouble(of).sorted().toArray();
    return sorted[sorted.length / 2];
  }
}
