package dev.weft.tensor.cuda;

import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The modules that training of a decoder uses. Where the first one that is asked for is not in the
 * cache on disk, all are compiled side by side on threads of their own, so that the program finds
 * most of them done when it comes to them. Thread-safe.
 */
final class UsualKernels {
  private static final Logger LOG = LoggerFactory.getLogger(UsualKernels.class);
  private static final int MOST_THREADS = 8;
  private static final int SECONDS_AT_EXIT = 5;
  // The slow ones first.
  private static final List<KernelModule> ALL =
      List.of(
          KernelModule.of("flash.cu", "T=bf16", "D=64"),
          KernelModule.of("norm.cu", "T=float", "O=bf16", "LAYER=0"),
          KernelModule.of("norm.cu", "T=float", "O=float", "LAYER=0"),
          KernelModule.of("loss.cu", "T=float", "R=float"),
          KernelModule.of("embedding.cu", "T=float"),
          KernelModule.of("swiglu.cu", "T=bf16"),
          KernelModule.of("swiglu.cu", "T=float"),
          KernelModule.of("rope.cu", "T=bf16"),
          KernelModule.of("rope.cu", "T=float"),
          KernelModule.of("fill.cu", "TYPE=float"),
          KernelModule.of("foreach.cu", "T=float"),
          KernelModule.of("update.cu", "P=float", "G=float"),
          KernelModule.of("copy.cu", "FROM=float", "TO=bf16"),
          KernelModule.of("copy.cu", "FROM=bf16", "TO=float"),
          KernelModule.of("copy.cu", "FROM=bf16", "TO=bf16"),
          KernelModule.of("copy.cu", "FROM=float", "TO=float"),
          KernelModule.of("copy.cu", "FROM=i64", "TO=i64"));
  private static final AtomicBoolean STARTED = new AtomicBoolean();

  private UsualKernels() {}

  /** Begins to compile all, the first time; needs more than two processors. */
  static void prepare(String architecture) {
    int threads = Math.min(MOST_THREADS, Runtime.getRuntime().availableProcessors() / 2);
    if (threads < 2 || !STARTED.compareAndSet(false, true)) {
      return;
    }
    ThreadPoolExecutor pool =
        new ThreadPoolExecutor(
            threads,
            threads,
            1,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(ALL.size()),
            task -> {
              Thread thread = new Thread(task, "weft-kernels");
              thread.setDaemon(true);
              return thread;
            });
    pool.allowCoreThreadTimeOut(true);
    // A compiler at work while the process lets its libraries go could crash.
    try {
      Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(pool), "weft-kernels-stop"));
    } catch (IllegalStateException e) {
      LOG.debug("the process ends, and kernels are compiled one by one", e);
      return;
    }
    for (KernelModule module : ALL) {
      pool.execute(() -> compile(module, architecture));
    }
  }

  private static void compile(KernelModule module, String architecture) {
    try {
      byte[] unused = module.compile(architecture);
    } catch (RuntimeException | Error e) {
      // Who needs the module meets the same failure, and throws it.
      LOG.debug("{} was not compiled ahead", module, e);
    }
  }

  private static void stop(ThreadPoolExecutor pool) {
    List<Runnable> unused = pool.shutdownNow();
    try {
      if (!pool.awaitTermination(SECONDS_AT_EXIT, TimeUnit.SECONDS)) {
        LOG.debug("a kernel is still being compiled at exit");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
