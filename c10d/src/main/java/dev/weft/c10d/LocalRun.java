package dev.weft.c10d;

import dev.weft.tensor.cpu.BlasThreads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * One run of a world of threads. Each rank has a new thread: what belongs to a thread, such as its
 * random numbers, its current device and whether it records gradients, begins anew in each world.
 */
final class LocalRun<T extends @Nullable Object> {
  private static final Duration DRAIN_LIMIT = Duration.ofMinutes(1);
  private static final long GRACE_NANOS = 5_000_000_000L;

  private final List<RankContext> contexts;
  private final IntFunction<String> names;
  private final RankBody<T> body;
  private final @Nullable Object[] results;
  private final @Nullable Thread[] threads;
  private final AtomicInteger running;
  private final Thread caller = Thread.currentThread();
  private final List<Throwable> failures = new ArrayList<>();

  LocalRun(List<RankContext> contexts, IntFunction<String> names, RankBody<T> body) {
    this.contexts = contexts;
    this.names = names;
    this.body = body;
    this.results = new @Nullable Object[contexts.size()];
    this.threads = new @Nullable Thread[contexts.size()];
    this.running = new AtomicInteger(contexts.size());
  }

  List<T> execute() {
    if (contexts.size() == 1) {
      return start();
    }
    try (BlasThreads.Sharing sharing = BlasThreads.share()) {
      return start();
    }
  }

  private List<T> start() {
    for (int r = 0; r < contexts.size(); r++) {
      int rank = r;
      try {
        Thread thread = new Thread(() -> runRank(rank), names.apply(rank));
        thread.setDaemon(true);
        synchronized (threads) {
          threads[rank] = thread;
        }
        thread.start();
      } catch (RuntimeException | Error e) { // no more threads
        synchronized (threads) {
          threads[rank] = null;
        }
        failed(rank, e);
        int unused = running.decrementAndGet();
      }
    }
    awaitRanks();
    rethrow();
    @SuppressWarnings("unchecked") // filled with the body's results only
    List<T> out = (List<T>) Arrays.asList(results);
    return out;
  }

  private void runRank(int rank) {
    RankContext context = contexts.get(rank);
    RankContext unusedBefore = context.bind();
    try {
      results[rank] = body.run(rank);
      context.close(DRAIN_LIMIT);
      if (context.isThreadWorld()) {
        tellOthers(rank, null); // over TCP the good-bye does
      }
    } catch (Throwable e) {
      failed(rank, e);
      context.groups().abortAll(e);
      context.close(Duration.ofSeconds(1));
    } finally {
      RankContext.restore(null);
      if (running.decrementAndGet() == 0) {
        LockSupport.unpark(caller);
      }
    }
  }

  private void failed(int rank, Throwable cause) {
    synchronized (failures) {
      failures.add(cause);
    }
    tellOthers(rank, cause);
  }

  private void tellOthers(int rank, @Nullable Throwable cause) {
    for (RankContext other : contexts) {
      if (other.rank() == rank) {
        continue;
      }
      if (cause == null) {
        other.peerLeft(rank);
      } else {
        other.peerFailed(rank, cause);
      }
    }
  }

  /** Waits for all; after a failure, ranks that wait for something else are interrupted. */
  private void awaitRanks() {
    boolean interrupted = false;
    long abortedAt = 0;
    while (running.get() > 0) {
      LockSupport.parkNanos(this, 500_000_000L);
      if (Thread.interrupted()) {
        interrupted = true;
        InterruptedException cause = new InterruptedException("the world's caller was interrupted");
        for (RankContext c : contexts) {
          c.groups().abortAll(new DistributedException("the world was interrupted", cause));
        }
        interruptRanks();
      }
      boolean failing;
      synchronized (failures) {
        failing = !failures.isEmpty();
      }
      long now = System.nanoTime();
      if (failing && abortedAt == 0) {
        abortedAt = now;
      } else if (failing && now - abortedAt > GRACE_NANOS) {
        interruptRanks();
        abortedAt = now;
      }
    }
    if (interrupted) {
      caller.interrupt();
    }
  }

  private void interruptRanks() {
    synchronized (threads) {
      for (Thread t : threads) {
        if (t != null) {
          t.interrupt();
        }
      }
    }
  }

  private void rethrow() {
    synchronized (failures) {
      if (failures.isEmpty()) {
        return;
      }
      Throwable first = failures.get(0);
      for (Throwable other : failures.subList(1, failures.size())) {
        if (other != first) {
          first.addSuppressed(other);
        }
      }
      if (first instanceof RuntimeException r) {
        throw r;
      }
      if (first instanceof Error e) {
        throw e;
      }
      throw new DistributedException("a rank failed: " + first, first);
    }
  }
}
