package dev.weft.c10d.elastic;

import dev.weft.c10d.StoreException;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Keeps an agent in touch with the others on a thread of its own, whatever the agent is busy with:
 * shows its heartbeat, follows the state of the run, and notices whose heartbeat stopped.
 * Thread-safe.
 */
final class AgentWatch implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(AgentWatch.class);
  private static final long RETRY_MILLIS = 200;
  private static final long JOIN_MILLIS = 2000;

  private final Ledger ledger;
  private final String self;
  private final Duration interval;
  private final Duration timeout;
  private final Runnable onChange;
  private final Thread thread;
  private final Map<String, Pulse> pulses = new HashMap<>(); // of the watch's thread
  private volatile RunState latest;
  private volatile Set<String> silent = Set.of();
  private volatile @Nullable StoreException storeLoss;
  private volatile boolean closed;

  /** The last heartbeat of an agent, and how long this one has seen no other. */
  private record Pulse(long count, long silentNanos) {}

  AgentWatch(
      Ledger ledger,
      String self,
      RunState state,
      Duration interval,
      Duration timeout,
      Runnable onChange) {
    this.ledger = ledger;
    this.self = self;
    this.latest = state;
    this.interval = interval;
    this.timeout = timeout;
    this.onChange = onChange;
    this.thread = new Thread(this::run, "weft-agent-watch");
    thread.setDaemon(true);
  }

  void start() {
    thread.start();
  }

  /** The state as last seen. */
  RunState latest() {
    return latest;
  }

  /** Takes a newer state that the agent wrote itself. */
  synchronized void saw(RunState state) {
    if (state.version() > latest.version()) {
      latest = state;
    }
  }

  /** Agents whose heartbeat has stopped. */
  Set<String> silent() {
    return silent;
  }

  /** Why the store cannot be reached, if it has been so for the timeout. */
  Optional<StoreException> storeLoss() {
    return Optional.ofNullable(storeLoss);
  }

  private void run() {
    long lastGood = System.nanoTime();
    while (!closed) {
      try {
        ledger.beat();
        RunState state = ledger.read();
        long now = System.nanoTime();
        look(state, now - lastGood);
        lastGood = now;
        ledger.awaitChange(state.version(), interval);
      } catch (StoreException e) {
        if (closed) {
          return;
        }
        if (System.nanoTime() - lastGood > timeout.toNanos()) {
          storeLoss = e;
          onChange.run();
          return;
        }
        log.debug("the agents' store does not answer, trying again", e);
        pause();
      }
    }
  }

  private void look(RunState state, long elapsed) {
    // A store or an agent that stood still shows no heartbeats of others for that time; a look
    // counts for no more than two intervals, so that they get the time to show that they live.
    long counted = Math.min(elapsed, 2 * interval.toNanos());
    var others = state.everyone();
    others.remove(self);
    pulses.keySet().retainAll(others);
    var stopped = new TreeSet<String>();
    ledger
        .beats(others)
        .forEach(
            (id, count) -> {
              Pulse before = pulses.get(id);
              boolean beats = before == null || before.count != count;
              long quiet = before == null || beats ? 0 : before.silentNanos + counted;
              pulses.put(id, new Pulse(count, quiet));
              if (quiet > timeout.toNanos()) {
                stopped.add(id);
              }
            });
    boolean news = state.version() > latest.version() || !stopped.equals(silent);
    silent = Set.copyOf(stopped);
    saw(state);
    if (news) {
      onChange.run();
    }
  }

  private void pause() {
    try {
      Thread.sleep(RETRY_MILLIS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      log.debug("interrupted", e);
      closed = true;
    }
  }

  /** Ends the watch; nobody else interrupts its thread. */
  @Override
  public void close() {
    closed = true;
    thread.interrupt();
    try {
      thread.join(JOIN_MILLIS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
