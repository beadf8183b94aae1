package dev.weft.c10d.faults;

import dev.weft.c10d.ProcessRanks;
import dev.weft.c10d.RankContext;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The ranks that live in the test: what each of them saw, and how long after the fault. */
final class Survivors implements AutoCloseable {
  /** What a rank does. */
  interface Body {
    void run(RankContext rank) throws Exception;
  }

  /**
   * How a rank ended.
   *
   * @param failure what it threw, or null
   * @param at when, in {@code System.nanoTime}
   */
  record Ending(int rank, @Nullable Throwable failure, long at) {}

  private final List<RankContext> ranks;
  private final List<Thread> threads = new ArrayList<>();
  private final @org.jspecify.annotations.Nullable Ending[] endings;
  private final CountDownLatch ended;

  Survivors(List<RankContext> ranks, Body body) {
    this.ranks = ranks;
    this.endings = new @Nullable Ending[ranks.size()];
    this.ended = new CountDownLatch(ranks.size());
    for (int i = 0; i < ranks.size(); i++) {
      int at = i;
      Thread t = new Thread(() -> run(at, body), "survivor-" + ranks.get(i).rank());
      t.setDaemon(true);
      threads.add(t);
    }
    threads.forEach(Thread::start);
  }

  private void run(int at, Body body) {
    Throwable failure = null;
    try {
      body.run(ranks.get(at));
    } catch (Throwable e) {
      failure = e;
    }
    endings[at] = new Ending(ranks.get(at).rank(), failure, System.nanoTime());
    ended.countDown();
  }

  /** The endings, or an error where a rank hangs. */
  List<Ending> await(long seconds) throws InterruptedException {
    if (!ended.await(seconds, TimeUnit.SECONDS)) {
      StringBuilder text = new StringBuilder("a rank hangs:");
      for (int i = 0; i < endings.length; i++) {
        if (endings[i] == null) {
          text.append("\n rank ").append(ranks.get(i).rank());
          for (StackTraceElement e : threads.get(i).getStackTrace()) {
            text.append("\n    at ").append(e);
          }
        }
      }
      throw new AssertionError(text.toString());
    }
    List<Ending> out = new ArrayList<>();
    for (Ending e : endings) {
      out.add(java.util.Objects.requireNonNull(e));
    }
    return out;
  }

  @Override
  public void close() {
    ranks.forEach(ProcessRanks::leave);
  }
}
