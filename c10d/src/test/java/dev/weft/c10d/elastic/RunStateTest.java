package dev.weft.c10d.elastic;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.Collections2;
import dev.weft.c10d.store.HashStore;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What agents agree on, step by step. */
@Timeout(60)
class RunStateTest {
  private static Member agent(String id) {
    return new Member(id, -1);
  }

  private static RunState running(int min, int max, int restarts, String... ids) {
    RunState state = RunState.first(new Settings(min, max, 2, restarts));
    for (String id : ids) {
      state = state.join(agent(id));
    }
    return state.seal();
  }

  private static List<String> names(List<Member> members) {
    return members.stream().map(Member::id).toList();
  }

  private static FirstFailure failure(int round, int rank, boolean primary) {
    return new FirstFailure(
        round, rank, rank / 2, "h", 1, 9, "exit code 9", "", "", List.of(), primary);
  }

  @Test
  void aRoundBeginsWithEnoughAgentsAndTakesNoMoreThanAllowed() {
    RunState state = RunState.first(new Settings(2, 3, 2, 0)).join(agent("a"));
    assertThat(state.isReady()).isFalse();
    assertThat(state.seal()).isEqualTo(state);
    state = state.join(agent("b"));
    assertThat(state.isReady()).isTrue();
    assertThat(state.isComplete()).isFalse();
    state = state.join(agent("c")).join(agent("d")).join(agent("b"));
    assertThat(state.isComplete()).isTrue();
    assertThat(names(state.members())).containsExactly("a", "b", "c");
    assertThat(names(state.waiting())).containsExactly("d");
    state = state.seal();
    assertThat(state.phase()).isEqualTo(RunState.Phase.RUNNING);
    assertThat(state.join(agent("d"))).isEqualTo(state); // there is no place for it
  }

  @Test
  void afterAFailureNumbersStayInWhateverOrderAgentsComeBack() {
    for (List<String> order : Collections2.permutations(List.of("a", "b", "c"))) {
      RunState state = running(3, 3, 1, "a", "b", "c").fail(failure(0, 2, true));
      assertThat(state.round()).isEqualTo(1);
      for (String id : order) {
        assertThat(state.settle()).isEqualTo(state); // not before all have stopped
        state = state.join(agent(id));
      }
      state = state.settle();
      assertThat(state.restarts()).isEqualTo(1);
      assertThat(state.isComplete()).isTrue();
      assertThat(names(state.seal().members())).containsExactly("a", "b", "c");
    }
  }

  @Test
  void aCauseEndsTheRunAtOnceWhenNoRestartIsLeft() {
    RunState state = running(2, 2, 0, "a", "b").fail(failure(0, 3, true));
    assertThat(state.phase()).isEqualTo(RunState.Phase.FAILED);
    assertThat(state.exitCode()).isEqualTo(9);
    assertThat(state.fail(failure(0, 1, true))).isEqualTo(state);
  }

  @Test
  void aConsequenceGivesWayToItsCause() {
    RunState state = running(2, 2, 1, "a", "b").fail(failure(0, 0, false));
    assertThat(state.fail(failure(0, 1, false))).isEqualTo(state);
    state = state.fail(failure(0, 3, true));
    assertThat(state.failure()).isEqualTo(failure(0, 3, true));
    assertThat(state.fail(failure(0, 2, true))).isEqualTo(state);
    state = state.join(agent("a")).join(agent("b")).settle();
    assertThat(state.restarts()).isEqualTo(1);
  }

  /** P54: ranks that fail since a node is gone cost no restart. */
  @Test
  void theConsequenceOfALostNodeIsNoRestart() {
    RunState state = running(1, 2, 0, "a", "b").fail(failure(0, 0, false)).join(agent("a"));
    assertThat(state.phase()).isEqualTo(RunState.Phase.JOINING);
    state = state.drop("b", "node b is silent").settle();
    assertThat(state.restarts()).isZero();
    assertThat(state.isReady()).isTrue();
    assertThat(state.isComplete()).isFalse(); // another may take its place
    assertThat(names(state.seal().members())).containsExactly("a");
  }

  @Test
  void aConsequenceWithoutACauseCountsAsAFailure() {
    RunState state = running(2, 2, 0, "a", "b").fail(failure(0, 0, false));
    state = state.join(agent("a")).join(agent("b")).settle();
    assertThat(state.phase()).isEqualTo(RunState.Phase.FAILED);
    assertThat(state.exitCode()).isEqualTo(9);
  }

  @Test
  void aNewcomerBeginsARoundUnlessTheRunIsAboutToEnd() {
    RunState state = running(1, 2, 0, "a");
    RunState next = state.join(agent("b"));
    assertThat(next.round()).isEqualTo(1);
    assertThat(next.isReady()).isFalse(); // a has yet to stop its ranks
    next = next.join(agent("a"));
    assertThat(next.restarts()).isZero();
    assertThat(names(next.seal().members())).containsExactly("a", "b");

    RunState ending = running(1, 3, 0, "a", "b").finish(0, "a").join(agent("c"));
    assertThat(ending.round()).isZero();
    assertThat(names(ending.waiting())).containsExactly("c");
    assertThat(ending.finish(0, "b").phase()).isEqualTo(RunState.Phase.DONE);
  }

  @Test
  void newsOfAnotherRoundChangeNothing() {
    RunState state = running(1, 2, 3, "a", "b");
    assertThat(state.fail(failure(1, 0, true))).isEqualTo(state);
    assertThat(state.finish(4, "a")).isEqualTo(state);
    assertThat(state.serve(1, "h:1")).isEqualTo(state);
    assertThat(state.drop("stranger", "gone")).isEqualTo(state);
    RunState served = state.serve(0, "h:1");
    assertThat(served.serve(0, "h:2")).isEqualTo(served);
    assertThat(Ledger.parse(Ledger.text(served))).isEqualTo(served);
  }

  @Test
  void noChangeIsLostWhenAllAgentsWriteAtOnce() throws Exception {
    int agents = 8;
    try (var store = new HashStore()) {
      var settings = new Settings(agents, agents, 1, 0);
      var go = new CountDownLatch(1);
      var threads = new ArrayList<Thread>();
      for (int i = 0; i < agents; i++) {
        String id = "agent" + i;
        var ledger = new Ledger(store, id);
        UnaryOperator<RunState> join = s -> s.join(agent(id));
        threads.add(
            new Thread(
                () -> {
                  RunState unused = ledger.open(settings);
                  try {
                    go.await();
                  } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                  }
                  unused = ledger.change(join);
                }));
      }
      threads.forEach(Thread::start);
      go.countDown();
      for (Thread thread : threads) {
        thread.join();
      }
      RunState end = new Ledger(store, "reader").read();
      assertThat(end.members()).hasSize(agents);
      assertThat(end.version()).isEqualTo(1 + agents);
    }
  }
}
