package dev.weft.c10d;

import dev.weft.c10d.debug.FlightRecorderConfig;
import dev.weft.c10d.store.HashStore;
import dev.weft.tensor.Device;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * A world whose ranks are threads of this JVM. {@link #run} and {@link #call} start one new thread
 * a rank, wait for all, and may be called from any thread, also several worlds at once. What
 * belongs to a thread (random numbers, the current device, whether gradients are recorded) begins
 * anew.
 *
 * <p>When a rank throws, the others are aborted: whatever they wait for ends with a {@link
 * PeerFailedException}. The first failure is then thrown, the others as its suppressed ones.
 */
public final class LocalWorld {
  private final int size;
  private String backend = "host";
  private Duration timeout = Distributed.DEFAULT_TIMEOUT;
  private boolean asProcesses;
  private final Map<String, String> environment = new HashMap<>(System.getenv());
  private FlightRecorderConfig recorder = FlightRecorderConfig.fromEnvironment(System.getenv());
  private IntFunction<String> names = rank -> "rank-" + rank;
  private @Nullable IntFunction<Device> devices;
  private @Nullable LinkShape slowLinks = LinkShape.fromEnvironment(System.getenv());

  private LocalWorld(int size) {
    if (size < 1) {
      throw new IllegalArgumentException("world size is " + size + "; expected 1 or more");
    }
    this.size = size;
  }

  /** A world of so many ranks, with options to set. */
  public static LocalWorld of(int size) {
    return new LocalWorld(size);
  }

  /** The backend string; {@code host} unless set. */
  public LocalWorld backend(String backend) {
    this.backend = backend;
    return this;
  }

  /** How long operations may take; half an hour unless set. */
  public LocalWorld timeout(Duration timeout) {
    this.timeout = timeout;
    return this;
  }

  /** The ranks talk over TCP on loopback, as processes do; to try that in one debugger. */
  public LocalWorld overTcp() {
    return asProcesses("tcp");
  }

  /** The ranks talk through shared memory, as processes of one machine do; or it is an error. */
  public LocalWorld overSharedMemory() {
    return asProcesses("shm");
  }

  private LocalWorld asProcesses(String transport) {
    this.asProcesses = true;
    return variable("WEFT_HOST_TRANSPORT", transport);
  }

  /**
   * Gives a variable that the ranks' backends read another value than the process's, such as {@code
   * WEFT_HOST_ALGORITHM}.
   */
  public LocalWorld variable(String name, String value) {
    environment.put(name, value);
    return this;
  }

  /** Has the host backend simulate a slow network between islands of ranks. */
  public LocalWorld slowLinks(LinkShape shape) {
    this.slowLinks = shape;
    return this;
  }

  /** What flight recorders keep; what the environment says unless set. */
  public LocalWorld flightRecorder(FlightRecorderConfig recorder) {
    this.recorder = recorder;
    return this;
  }

  /** Binds each rank to a CUDA device of its own, which is its thread's current one. */
  public LocalWorld devices(IntFunction<Device> devices) {
    this.devices = devices;
    return this;
  }

  /** The threads' names by rank. */
  public LocalWorld threadNames(IntFunction<String> names) {
    this.names = names;
    return this;
  }

  /** Runs the same code on so many ranks. */
  public static void run(int size, RankBody.Action body) {
    of(size).run(body);
  }

  /** Runs the same code on so many ranks and returns their results by rank. */
  public static <T extends @Nullable Object> List<T> call(int size, RankBody<T> body) {
    return of(size).call(body);
  }

  /** Runs the code on all ranks. */
  public void run(RankBody.Action body) {
    List<Boolean> unused =
        call(
            rank -> {
              body.run(rank);
              return true;
            });
  }

  /** Runs the code on all ranks and returns their results by rank. */
  public <T extends @Nullable Object> List<T> call(RankBody<T> body) {
    SharedObjects shared = new SharedObjects();
    Map<String, String> variables = Map.copyOf(environment);
    List<RankContext> contexts = new ArrayList<>(size);
    for (int r = 0; r < size; r++) {
      contexts.add(
          new RankContext(
              r,
              size,
              () -> shared.get(HashStore.class, HashStore::new),
              timeout,
              backend,
              asProcesses ? null : shared,
              null,
              recorder,
              variables));
      contexts.get(r).linkShape(slowLinks);
    }
    IntFunction<Device> bound = devices;
    RankBody<T> connected =
        rank -> {
          RankContext self = RankContext.current();
          if (bound != null) {
            self.bindDevice(bound.apply(rank));
          }
          if (asProcesses) {
            Backend unused = self.world().backends().forControl();
          }
          if (bound != null && self.world().backends().deviceTypes().contains("cuda")) {
            Backend unused = self.world().backend("cuda");
          }
          return body.run(rank);
        };
    LocalRun<T> run =
        new LocalRun<>(contexts, names, asProcesses || bound != null ? connected : body);
    RankContext.threadWorldStarts();
    try {
      return run.execute();
    } finally {
      RankContext.threadWorldEnds();
    }
  }
}
