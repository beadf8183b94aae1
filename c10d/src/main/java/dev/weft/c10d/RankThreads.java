package dev.weft.c10d;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** The daemon threads that worlds of threads run on; those that idle end by themselves. */
final class RankThreads {
  static final ExecutorService POOL =
      new ThreadPoolExecutor(
          0,
          Integer.MAX_VALUE,
          1,
          TimeUnit.SECONDS,
          new SynchronousQueue<>(),
          r -> {
            Thread t = new Thread(r, "weft-rank-idle");
            t.setDaemon(true);
            return t;
          });

  private RankThreads() {}
}
