package dev.weft.c10d.host;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** The daemon threads of asynchronous operations; those that idle end by themselves. */
final class ProgressThreads {
  static final ExecutorService POOL =
      new ThreadPoolExecutor(
          0,
          Integer.MAX_VALUE,
          1,
          TimeUnit.SECONDS,
          new SynchronousQueue<>(),
          r -> {
            Thread t = new Thread(r, "weft-progress-idle");
            t.setDaemon(true);
            return t;
          });

  private ProgressThreads() {}
}
