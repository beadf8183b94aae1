package dev.weft.c10d.elastic;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * All that the agents of a run agree on: one value in their store, which is only ever replaced by
 * the outcome of one of the transitions below, computed from the very value that it replaces.
 * Immutable.
 *
 * <p>A run goes through rounds. In a round agents first join ({@link Phase#JOINING}), then run
 * their ranks ({@link Phase#RUNNING}). When a rank fails, or an agent leaves or joins, the next
 * round begins: the agents of the last one are {@code pending} until they have stopped their ranks
 * and joined again.
 *
 * @param version counts the changes
 * @param writer the agent that made the last one
 * @param settings what the first agent brought
 * @param phase where the run stands
 * @param round the attempt, from 0
 * @param members the agents of the round; while running, in the order of their numbers
 * @param pending agents of the last round that have yet to stop their ranks
 * @param waiting agents that come into a later round
 * @param finished the members whose ranks have all ended well
 * @param lost agents that went since the last round
 * @param lastSize the number of agents in the last round, 0 before the first
 * @param restarts how often ranks were started again after a failure
 * @param master where the ranks' store is found, empty until it is there
 * @param reason why this round began, or how the run failed
 * @param failure the failure of the last round until it is settled, or the one that ended the run
 * @param exitCode what agents end with when the run has failed
 */
record RunState(
    long version,
    String writer,
    Settings settings,
    Phase phase,
    int round,
    List<Member> members,
    List<Member> pending,
    List<Member> waiting,
    List<String> finished,
    List<String> lost,
    int lastSize,
    int restarts,
    String master,
    String reason,
    @Nullable FirstFailure failure,
    int exitCode) {
  /** Where a run stands. */
  enum Phase {
    /** Agents gather. */
    JOINING,
    /** Ranks run, or are about to be started. */
    RUNNING,
    /** All ranks ended well. */
    DONE,
    /** The run ended otherwise. */
    FAILED
  }

  static RunState first(Settings settings) {
    return new RunState(
        0,
        "",
        settings,
        Phase.JOINING,
        0,
        List.of(),
        List.of(),
        List.of(),
        List.of(),
        List.of(),
        0,
        0,
        "",
        "the run begins",
        null,
        0);
  }

  // ---- questions ----

  boolean isOver() {
    return phase == Phase.DONE || phase == Phase.FAILED;
  }

  /** The number of an agent among the members, or -1. */
  int numberOf(String id) {
    return indexOf(members, id);
  }

  boolean isPending(String id) {
    return indexOf(pending, id) >= 0;
  }

  boolean isWaiting(String id) {
    return indexOf(waiting, id) >= 0;
  }

  /** All agents that have a place in the run. */
  Set<String> everyone() {
    var ids = new LinkedHashSet<String>();
    Stream.of(members, pending, waiting).flatMap(List::stream).map(Member::id).forEach(ids::add);
    return ids;
  }

  /** Whether the round can begin once nobody is awaited any more. */
  boolean isReady() {
    return phase == Phase.JOINING
        && pending.isEmpty()
        && failure == null
        && members.size() >= settings.minNodes();
  }

  /** Whether a round that is ready should begin without waiting for more agents. */
  boolean isComplete() {
    return isReady()
        && (members.size() == settings.maxNodes() || (lastSize > 0 && members.size() >= lastSize));
  }

  // ---- transitions: each returns this state if there is nothing to change ----

  /** An agent comes, or comes again after it has stopped its ranks. */
  RunState join(Member agent) {
    if (isOver() || numberOf(agent.id()) >= 0) {
      return this;
    }
    var draft = new Draft(this);
    if (phase == Phase.JOINING) {
      if (isPending(agent.id())) {
        draft.members.add(remove(draft.pending, agent.id()).orElse(agent));
      } else if (members.size() + pending.size() < settings.maxNodes()) {
        draft.members.add(remove(draft.waiting, agent.id()).orElse(agent));
      } else if (!isWaiting(agent.id())) {
        draft.waiting.add(agent);
      } else {
        return this;
      }
      return draft.done();
    }
    if (!isWaiting(agent.id())) {
      draft.waiting.add(agent);
    }
    // While some have finished there is nothing left to share with a newcomer.
    if (members.size() < settings.maxNodes() && finished.isEmpty()) {
      return draft.nextRound("node " + agent.id() + " joined").done();
    }
    return isWaiting(agent.id()) ? this : draft.done();
  }

  /** The gathering ends and the round begins: former members first, so that numbers stay. */
  RunState seal() {
    if (!isReady()) {
      return this;
    }
    var draft = new Draft(this);
    draft.phase = Phase.RUNNING;
    draft.members.sort(
        Comparator.comparingInt(
            member -> member.previous() < 0 ? Integer.MAX_VALUE : member.previous()));
    draft.lost.clear();
    return draft.done();
  }

  /** The ranks' store is there. */
  RunState serve(int servedRound, String address) {
    if (phase != Phase.RUNNING || round != servedRound || !master.isEmpty()) {
      return this;
    }
    var draft = new Draft(this);
    draft.master = address;
    return draft.done();
  }

  /** All ranks of a member ended well; the last one ends the run. */
  RunState finish(int finishedRound, String id) {
    if (phase != Phase.RUNNING || round != finishedRound || finished.contains(id)) {
      return this;
    }
    var draft = new Draft(this);
    draft.finished.add(id);
    if (draft.finished.size() == members.size()) {
      draft.phase = Phase.DONE;
      draft.reason = "all ranks ended well";
    }
    return draft.done();
  }

  /**
   * A rank failed. A failure that only follows from another gives way to that one. A cause of its
   * own that comes when no restart is left ends the run.
   */
  RunState fail(FirstFailure what) {
    boolean begins = phase == Phase.RUNNING && round == what.round();
    boolean corrects =
        phase == Phase.JOINING
            && round == what.round() + 1
            && failure != null
            && !failure.primary()
            && what.primary();
    if (!begins && !corrects) {
      return this;
    }
    var draft = new Draft(this);
    if (begins) {
      draft.nextRound(what.brief());
    }
    draft.failure = what;
    draft.reason = what.brief();
    if (what.primary() && restarts >= settings.maxRestarts()) {
      draft.endWith(what);
    }
    return draft.done();
  }

  /** An agent is gone, or goes. */
  RunState drop(String id, String why) {
    if (isOver() || !everyone().contains(id) || finished.contains(id)) {
      return this;
    }
    var draft = new Draft(this);
    if (phase == Phase.RUNNING && numberOf(id) >= 0) {
      draft.nextRound(why);
    }
    for (var list : List.of(draft.members, draft.pending, draft.waiting)) {
      remove(list, id).ifPresent(gone -> draft.lost.add(gone.id()));
    }
    return draft.done();
  }

  /**
   * Once all members have stopped or are known to be gone, says what their failure was: the
   * consequence of a lost agent, which is no restart; or a failure, which takes one, or ends the
   * run.
   */
  RunState settle() {
    FirstFailure what = failure;
    if (phase != Phase.JOINING || what == null || !pending.isEmpty()) {
      return this;
    }
    var draft = new Draft(this);
    if (!what.primary() && !lost.isEmpty()) {
      draft.reason = "node " + String.join(", ", lost) + " is lost";
    } else if (restarts >= settings.maxRestarts()) {
      return draft.endWith(what).done();
    } else {
      draft.restarts++;
    }
    draft.failure = null;
    return draft.done();
  }

  /** The run cannot go on. */
  RunState giveUp(String why, int code) {
    if (isOver()) {
      return this;
    }
    var draft = new Draft(this);
    draft.phase = Phase.FAILED;
    draft.reason = why;
    draft.exitCode = code;
    return draft.done();
  }

  RunState written(String by) {
    return new RunState(
        version + 1,
        by,
        settings,
        phase,
        round,
        members,
        pending,
        waiting,
        finished,
        lost,
        lastSize,
        restarts,
        master,
        reason,
        failure,
        exitCode);
  }

  private static int indexOf(List<Member> list, String id) {
    for (int i = 0; i < list.size(); i++) {
      if (list.get(i).id().equals(id)) {
        return i;
      }
    }
    return -1;
  }

  private static Optional<Member> remove(List<Member> list, String id) {
    int at = indexOf(list, id);
    return at < 0 ? Optional.empty() : Optional.of(list.remove(at));
  }

  /** A state in the making. */
  private static final class Draft {
    private final RunState from;
    private final List<Member> members;
    private final List<Member> pending;
    private final List<Member> waiting;
    private final List<String> finished;
    private final List<String> lost;
    private Phase phase;
    private int round;
    private int lastSize;
    private int restarts;
    private String master;
    private String reason;
    private @Nullable FirstFailure failure;
    private int exitCode;

    Draft(RunState from) {
      this.from = from;
      members = new ArrayList<>(from.members);
      pending = new ArrayList<>(from.pending);
      waiting = new ArrayList<>(from.waiting);
      finished = new ArrayList<>(from.finished);
      lost = new ArrayList<>(from.lost);
      phase = from.phase;
      round = from.round;
      lastSize = from.lastSize;
      restarts = from.restarts;
      master = from.master;
      reason = from.reason;
      failure = from.failure;
      exitCode = from.exitCode;
    }

    Draft nextRound(String why) {
      phase = Phase.JOINING;
      round++;
      lastSize = members.size();
      pending.clear();
      for (int i = 0; i < members.size(); i++) {
        pending.add(members.get(i).withPrevious(i));
      }
      members.clear();
      while (!waiting.isEmpty() && members.size() + pending.size() < from.settings.maxNodes()) {
        members.add(waiting.remove(0));
      }
      finished.clear();
      lost.clear();
      master = "";
      reason = why;
      return this;
    }

    Draft endWith(FirstFailure what) {
      phase = Phase.FAILED;
      failure = what;
      reason =
          from.settings.maxRestarts() == 0
              ? what.brief()
              : what.brief() + "; all " + from.settings.maxRestarts() + " restarts are used";
      exitCode = what.exitCode() > 0 ? what.exitCode() : 1;
      return this;
    }

    RunState done() {
      return new RunState(
          from.version,
          from.writer,
          from.settings,
          phase,
          round,
          List.copyOf(members),
          List.copyOf(pending),
          List.copyOf(waiting),
          List.copyOf(finished),
          List.copyOf(lost),
          lastSize,
          restarts,
          master,
          reason,
          failure,
          exitCode);
    }
  }
}
