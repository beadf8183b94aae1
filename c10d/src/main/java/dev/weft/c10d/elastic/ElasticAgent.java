package dev.weft.c10d.elastic;

import com.google.common.net.HostAndPort;
import dev.weft.c10d.Deadline;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.StoreException;
import dev.weft.c10d.store.PrefixStore;
import dev.weft.c10d.store.TcpStore;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One node of an elastic run: meets the other agents in a store, agrees with them on who takes part
 * and in which order, runs its ranks, and starts over with the others when a rank fails, or an
 * agent leaves or joins. The calling thread does all of it.
 *
 * <p>The agent reacts to the state of the run (a value in the store) and to the ends of its ranks;
 * each reaction is at most one change of that state, and is made again if another agent was faster.
 */
public final class ElasticAgent {
  private static final Logger log = LoggerFactory.getLogger(ElasticAgent.class);
  private static final Duration POLL = Duration.ofMillis(500);
  private static final Duration CONNECT = Duration.ofSeconds(2);
  private static final int STOPPED = 143;

  private final LaunchConfig config;
  private final ElasticOptions options;
  private final AgentStore agents;
  private final Ledger ledger;
  private final Member self;
  private final AgentWatch watch;
  private final RunReport report;
  private final Semaphore wake;
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile boolean stopping;

  private @Nullable Attempt attempt;
  private @Nullable TcpStore ranksStore;
  private int clockRound = -1;
  private Deadline joining;
  private Deadline connecting;
  private @Nullable Deadline lastCall;

  private ElasticAgent(
      LaunchConfig config,
      ElasticOptions options,
      AgentStore agents,
      Ledger ledger,
      Member self,
      RunState state,
      RunReport report) {
    this.config = config;
    this.options = options;
    this.agents = agents;
    this.ledger = ledger;
    this.self = self;
    this.report = report;
    this.wake = new Semaphore(0);
    this.joining = Deadline.after(options.joinTimeout());
    this.connecting = joining;
    this.watch =
        new AgentWatch(
            ledger,
            self.id(),
            state,
            options.heartbeatInterval(),
            options.heartbeatTimeout(),
            wake::release);
  }

  /**
   * Takes part in a run until it ends. SIGTERM and SIGINT end the ranks, with the grace period, and
   * let the others go on without this agent.
   *
   * @param config what to start on this machine; its run id names the run
   * @param options where and how the agents meet
   * @return 0 if all ranks of all agents ended with 0; the exit code of the rank that failed first;
   *     1 if the run failed otherwise; 143 if this agent was asked to end
   * @throws DistributedException if the agents' store cannot be served or reached
   */
  public static int run(LaunchConfig config, ElasticOptions options) {
    var report = new RunReport(config.err(), config.runId(), options.maxNodes() > 1);
    try (var agents = AgentStore.open(options.host(), options.port(), options.joinTimeout())) {
      // All calls are short; the store is given up when the heartbeat could not be shown.
      var store = agents.brief(options.heartbeatTimeout());
      String id =
          "%s/%d/%s"
              .formatted(
                  agents.address(),
                  ProcessHandle.current().pid(),
                  UUID.randomUUID().toString().substring(0, 8));
      var ledger = new Ledger(new PrefixStore("weft/run/" + config.runId(), store), id);
      var settings =
          new Settings(
              options.minNodes(), options.maxNodes(), config.nprocPerNode(), options.maxRestarts());
      ledger.beat();
      RunState state = ledger.open(settings);
      if (!state.settings().equals(settings)) {
        throw new IllegalArgumentException(
            "run '%s' was started with %s; this agent has %s"
                .formatted(config.runId(), state.settings(), settings));
      }
      if (state.isOver()) {
        report.say("run '" + config.runId() + "' is over already: " + state.reason());
        return state.exitCode();
      }
      var self = new Member(id, -1);
      var agent = new ElasticAgent(config, options, agents, ledger, self, state, report);
      return agent.runHooked();
    }
  }

  private int runHooked() {
    var hook = new Thread(this::askToStop, "weft-agent-stop");
    boolean hooked = Hooks.add(hook);
    watch.start();
    try {
      return drive();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return STOPPED;
    } finally {
      closeAttempt();
      watch.close();
      ended.countDown();
      if (hooked) {
        Hooks.remove(hook);
      }
    }
  }

  /** Runs in the shutdown hook: the process ends when this returns. */
  private void askToStop() {
    stopping = true;
    wake.release();
    var limit = config.gracePeriod().plus(config.noticePeriod()).plus(options.heartbeatTimeout());
    try {
      if (!ended.await(limit.toMillis(), TimeUnit.MILLISECONDS)) {
        log.warn("the agent did not end within {} ms", limit.toMillis());
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private int drive() throws InterruptedException {
    while (true) {
      try {
        if (stopping) {
          return leave();
        }
        var loss = watch.storeLoss();
        if (loss.isPresent()) {
          return storeLost(loss.get());
        }
        RunState state = watch.latest();
        if (state.isOver()) {
          return end(state);
        }
        if (react(state)) {
          continue;
        }
      } catch (StoreException e) {
        log.debug("a call of the agents' store failed; the watch says whether it is lost", e);
      }
      boolean unused = wake.tryAcquire(untilNextLook(), TimeUnit.MILLISECONDS);
      wake.drainPermits();
    }
  }

  private long untilNextLook() {
    var ends = lastCall;
    return ends == null || ends.hasPassed()
        ? POLL.toMillis()
        : Math.min(POLL.toMillis(), ends.remainingMillis());
  }

  /** Makes the next step, if there is one to make. */
  private boolean react(RunState state) throws InterruptedException {
    if (clockRound != state.round()) {
      clockRound = state.round();
      joining = Deadline.after(options.joinTimeout());
      lastCall = null;
    }
    var present = attempt;
    if (present != null && (state.round() != present.round())) {
      endAttempt(present, state);
      return true;
    }
    for (String id : watch.silent()) {
      if (changed(s -> s.drop(id, "node " + id + " is silent, and taken for dead"))) {
        return true;
      }
    }
    int node = state.numberOf(self.id());
    if (node < 0 && changed(s -> s.join(self))) {
      return true;
    }
    if (node < 0) {
      return false; // in the waiting list
    }
    return switch (state.phase()) {
      case JOINING -> gather(state);
      case RUNNING -> present == null ? begin(state, node) : supervise(state, present);
      case DONE, FAILED -> false;
    };
  }

  /** Applies a transition; says whether it, or somebody else, changed what this agent acts on. */
  private boolean changed(UnaryOperator<RunState> transition) {
    long before = watch.latest().version();
    RunState after = ledger.change(transition);
    watch.saw(after);
    return after.version() > before;
  }

  private boolean gather(RunState state) {
    if (state.failure() != null && state.pending().isEmpty()) {
      return changed(RunState::settle);
    }
    if (state.isComplete()) {
      return changed(s -> s.isComplete() ? s.seal() : s);
    }
    if (state.isReady()) {
      if (lastCall == null) {
        lastCall = Deadline.after(options.lastCall());
      }
      return lastCall.hasPassed() && changed(RunState::seal);
    }
    lastCall = null;
    if (joining.hasPassed()) {
      return changed(
          s ->
              s.round() == state.round() && !s.isReady()
                  ? s.giveUp(RunReport.tooFew(s, joining.timeout()), 1)
                  : s);
    }
    return false;
  }

  /** Starts this node's ranks, once node 0 has opened their store. */
  private boolean begin(RunState state, int node) {
    var served = ranksStore;
    if (served != null && (node > 0 || state.master().isEmpty())) {
      served.close(); // made for a round that did not come about
      ranksStore = null;
      served = null;
    }
    if (node == 0 && state.master().isEmpty()) {
      try {
        served = agents.serveRanks(config.masterPort());
      } catch (StoreException e) {
        return changed(s -> s.giveUp("node 0 cannot serve the ranks' store: " + e.getMessage(), 1));
      }
      ranksStore = served;
      connecting = Deadline.after(options.joinTimeout());
      String master = HostAndPort.fromParts(agents.address(), served.port()).toString();
      return changed(s -> s.serve(state.round(), master));
    }
    if (state.master().isEmpty()) {
      connecting = Deadline.after(options.joinTimeout());
      return false;
    }
    var master = HostAndPort.fromString(state.master());
    TcpStore store = served != null ? served : connect(master, node);
    if (store == null) {
      return false;
    }
    ranksStore = null;
    report.starts(state, node, config.nprocPerNode());
    try {
      attempt =
          Attempt.start(config, state, node, self.id(), master.getHost(), store, wake::release);
    } catch (DistributedException e) {
      store.close();
      return changed(s -> s.giveUp("node " + node + ": " + e.getMessage(), 1));
    }
    return true;
  }

  private @Nullable TcpStore connect(HostAndPort master, int node) {
    try {
      return TcpStore.at(master.getHost(), master.getPort())
          .waitForWorkers(false)
          .timeout(CONNECT)
          .open();
    } catch (StoreException e) {
      log.debug("no connection to the ranks' store yet", e);
      if (connecting.hasPassed()) {
        boolean unused =
            changed(
                s ->
                    s.giveUp(
                        "node %d (%s) cannot reach the ranks' store of node 0 at %s: %s"
                            .formatted(node, self.id(), master, e.getMessage()),
                        1));
      }
      return null;
    }
  }

  private boolean supervise(RunState state, Attempt present) throws InterruptedException {
    var failure = present.failure();
    if (stopping) {
      return true;
    }
    if (failure.isPresent()) {
      return changed(s -> s.fail(failure.get()));
    }
    return present.isFinished()
        && !state.finished().contains(self.id())
        && changed(s -> s.finish(present.round(), self.id()));
  }

  private void endAttempt(Attempt present, RunState state) throws InterruptedException {
    report.stops(state);
    if (state.failure() != null) {
      present.awaitNotice();
      // What this node's ranks ended with may be the cause of what another node told first.
      var own = present.failure();
      if (own.isPresent() && own.get().primary()) {
        boolean unused = changed(s -> s.fail(own.get()));
      }
    }
    closeAttempt();
  }

  private void closeAttempt() {
    var present = attempt;
    if (present != null) {
      present.close();
      attempt = null;
    }
    var served = ranksStore;
    if (served != null) {
      served.close();
      ranksStore = null;
    }
  }

  private int end(RunState state) {
    var present = attempt;
    if (present != null && state.phase() == RunState.Phase.FAILED) {
      present.awaitNotice();
    }
    closeAttempt();
    if (state.phase() == RunState.Phase.FAILED) {
      report.failed(state);
    }
    sayGoodbye(state);
    return state.exitCode();
  }

  /** The agent that serves the store stays until the others have read how the run ended. */
  private void sayGoodbye(RunState state) {
    var limit = config.gracePeriod().plus(config.noticePeriod()).plus(options.heartbeatTimeout());
    try {
      ledger.leave();
      var others = state.everyone();
      others.remove(self.id());
      others.removeAll(watch.silent());
      if (agents.hosted() && !others.isEmpty()) {
        var missing = ledger.awaitLeft(others, limit);
        if (!missing.isEmpty()) {
          log.warn("agents {} did not take leave within {} ms", missing, limit.toMillis());
        }
      }
    } catch (StoreException e) {
      log.debug("the agents' store is gone already", e); // all is known that it could tell
    }
  }

  private int leave() {
    report.say("this agent was asked to end; its ranks get SIGTERM");
    String who = "node " + self.id();
    RunState state = watch.latest();
    try {
      state =
          ledger.change(
              s ->
                  agents.hosted() && s.everyone().size() > 1
                      ? s.giveUp(
                          who + ", which serves the rendezvous store, was asked to end", STOPPED)
                      : s.drop(self.id(), who + " was asked to end and leaves"));
    } catch (StoreException e) {
      log.warn("the others could not be told that this agent leaves", e);
    }
    closeAttempt();
    sayGoodbye(state);
    return STOPPED;
  }

  private int storeLost(StoreException loss) {
    closeAttempt();
    report.say(
        ("run '%s' failed: the agents' rendezvous store at %s:%d is lost (%s). No rank is known to"
                + " have failed; the agent that serves the store, or the way to it, is gone")
            .formatted(config.runId(), options.host(), options.port(), loss.getMessage()));
    return 1;
  }
}
