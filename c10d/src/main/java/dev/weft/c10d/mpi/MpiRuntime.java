package dev.weft.c10d.mpi;

import dev.weft.c10d.DistributedException;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * MPI in this process: started once, by whoever needs it first, and shut down when the JVM ends in
 * good order, both on one thread of its own. Thread-safe.
 */
final class MpiRuntime {
  private static final Logger LOG = LoggerFactory.getLogger(MpiRuntime.class);
  private static final Duration FINALIZE_LIMIT = Duration.ofSeconds(10);
  private static final int MAX_TEXT = 8192;

  private static @Nullable MpiRuntime running;

  private final MpiAbi abi;
  private final String version;
  private final int rank;
  private final int size;

  /** Worlds that are open: while there are any, MPI is not shut down. */
  private final AtomicInteger worlds = new AtomicInteger();

  private MpiRuntime(MpiAbi abi, String version, int rank, int size) {
    this.abi = abi;
    this.version = version;
    this.rank = rank;
    this.size = size;
  }

  /**
   * Starts MPI, if that has not been done.
   *
   * @throws UnsupportedOperationException if there is no library, or it cannot serve threads
   */
  static synchronized MpiRuntime start() {
    MpiRuntime there = running;
    if (there == null) {
      MpiLibrary library = MpiLibrary.get();
      CompletableFuture<MpiRuntime> started = new CompletableFuture<>();
      CompletableFuture<Void> end = new CompletableFuture<>();
      Thread thread = new Thread(() -> live(library, started, end), "weft-mpi");
      thread.setDaemon(true);
      thread.start();
      try {
        there = started.join();
      } catch (CompletionException e) {
        throw e.getCause() instanceof RuntimeException r ? r : e;
      }
      running = there;
      MpiRuntime runtime = there;
      Runtime.getRuntime()
          .addShutdownHook(new Thread(() -> runtime.end(thread, end), "weft-mpi-end"));
    }
    return there;
  }

  MpiAbi abi() {
    return abi;
  }

  String version() {
    return version;
  }

  int rank() {
    return rank;
  }

  int size() {
    return size;
  }

  void worldOpened() {
    int unused = worlds.incrementAndGet();
  }

  void worldClosed() {
    int unused = worlds.decrementAndGet();
  }

  private static void live(
      MpiLibrary library, CompletableFuture<MpiRuntime> started, CompletableFuture<Void> end) {
    try {
      started.complete(initialize(library));
    } catch (Throwable e) {
      started.completeExceptionally(e);
      return;
    }
    end.join();
    int result = Mpi.MPI_Finalize();
    if (result != 0) {
      LOG.warn("MPI_Finalize failed with error {}", result);
    }
  }

  private static MpiRuntime initialize(MpiLibrary library) {
    Signals before = Signals.save();
    int[] provided = {0};
    MpiCalls.check("MPI_Init_thread", Mpi.MPI_Init_thread(0, 0, MpiAbi.THREAD_MULTIPLE, provided));
    before.restore(library.name());
    if (provided[0] < MpiAbi.THREAD_MULTIPLE) {
      throw new UnsupportedOperationException(
          library.name()
              + " gives thread level "
              + provided[0]
              + "; expected MPI_THREAD_MULTIPLE (3), which it has to be built with");
    }
    MpiAbi abi = library.abi();
    long world = abi.commWorld();
    MpiCalls.check(
        "MPI_Comm_set_errhandler", Mpi.MPI_Comm_set_errhandler(world, abi.errorsReturn()));
    int[] rank = {0};
    int[] size = {0};
    MpiCalls.check("MPI_Comm_rank", Mpi.MPI_Comm_rank(world, rank));
    MpiCalls.check("MPI_Comm_size", Mpi.MPI_Comm_size(world, size));
    String version = versionOfLibrary();
    LOG.debug("{}: rank {} of {} ({})", version, rank[0], size[0], library.name());
    return new MpiRuntime(abi, version, rank[0], size[0]);
  }

  private static String versionOfLibrary() {
    byte[] text = new byte[MAX_TEXT];
    int[] length = {0};
    MpiCalls.check("MPI_Get_library_version", Mpi.MPI_Get_library_version(text, length));
    String all = new String(text, 0, length[0], StandardCharsets.UTF_8);
    if (all.startsWith("Open MPI v")) {
      return "Open MPI " + all.substring(10).split("[,\\s]", 2)[0];
    }
    return all.lines()
        .findFirst()
        .orElse("MPI")
        .replaceAll("\\s+", " ")
        .replace("Version:", "")
        .strip();
  }

  /** Waits for a request for at most so long; false when it is not done. */
  static boolean await(MpiRequest request, Duration limit) {
    long end = System.nanoTime() + limit.toNanos();
    while (!request.isDone()) {
      if (System.nanoTime() - end > 0) {
        return false;
      }
      LockSupport.parkNanos(request, 100_000);
      if (Thread.currentThread().isInterrupted()) {
        throw new DistributedException("interrupted while waiting for MPI");
      }
    }
    return true;
  }

  private void end(Thread thread, CompletableFuture<Void> end) {
    if (worlds.get() > 0 || MpiRequest.UNDER_WAY.get() > 0) {
      // The launcher reports this process as ended without leaving, which is what happened.
      LOG.debug("MPI is not shut down: a world is open, or something is under way");
      return;
    }
    end.complete(null);
    try {
      thread.join(FINALIZE_LIMIT.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (thread.isAlive()) {
      LOG.warn("MPI did not shut down within {} s", FINALIZE_LIMIT.toSeconds());
    }
  }

  /** Sends a text from MPI's rank 0 to all. */
  String broadcast(@Nullable String text, Duration limit) {
    byte[] bytes = text == null ? new byte[0] : text.getBytes(StandardCharsets.UTF_8);
    int room = 4 + MAX_TEXT;
    if (bytes.length > MAX_TEXT) {
      throw new IllegalArgumentException("the text has " + bytes.length + " bytes");
    }
    long block = HostMemory.allocate(room);
    Memory.putInt(block, bytes.length);
    Memory.put(block + 4, bytes, 0, bytes.length);
    MpiRequest request =
        MpiRequest.start(
            "MPI_Ibcast",
            abi,
            (r, arrays) -> Mpi.MPI_Ibcast(block, room, abi.bytes(), 0, abi.commWorld(), r));
    if (!await(request, limit)) {
      // The block stays with the request.
      throw new DistributedException(
          "rank 0 did not tell where the store is within " + limit.toMillis() + " ms");
    }
    byte[] out = new byte[Memory.getInt(block)];
    Memory.get(block + 4, out, 0, out.length);
    HostMemory.free(block, room);
    return new String(out, StandardCharsets.UTF_8);
  }
}
