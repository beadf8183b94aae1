package dev.weft.c10d.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Ranks that are processes, which share GPUs where there are too few; {@link RankPrograms} has what
 * they do.
 */
@NcclTest
@Timeout(240)
class RankProcessesTest {
  @ParameterizedTest(name = "{1} on {0} ranks")
  @CsvSource({
    "2,collectives",
    "4,collectives",
    "2,only-collectives",
    "2,bound-collectives",
    "2,messages",
    "4,messages",
    "2,objects",
    "2,only-objects",
    "4,bound-split",
    "3,bound-shrink"
  })
  void allRanksGetWhatTheyShould(int size, String program) throws Exception {
    List<String> unused = RankProcesses.run(size, program, Map.of());
  }

  @ParameterizedTest(name = "{1} on {0} ranks, with launches that do not block")
  @CsvSource({"2,collectives", "2,messages", "4,bound-split", "3,bound-shrink"})
  void allRanksGetWhatTheyShouldWithoutBlocking(int size, String program) throws Exception {
    List<String> unused =
        RankProcesses.run(size, program, Map.of("WEFT_NCCL_USE_COMM_NONBLOCKING", "1"));
  }

  @Test
  @DisplayName("P33: a batch of hundreds of messages for each peer is launched in matching groups")
  void largeBatches() throws Exception {
    List<String> unused = RankProcesses.run(3, "large-batch", Map.of());
  }

  /** The second document's cache experiment: 36 operations, 12 communicators. */
  @Test
  void aCommunicatorForEachGroupAndRank() throws Exception {
    List<String> said = RankProcesses.run(4, "cache", Map.of());
    long operations =
        said.stream().flatMap(String::lines).filter(l -> l.equals("operation")).count();
    long communicators =
        said.stream()
            .flatMap(String::lines)
            .filter(l -> l.startsWith("communicators "))
            .mapToLong(l -> Long.parseLong(l.substring("communicators ".length())))
            .sum();
    assertThat(operations).isEqualTo(36);
    assertThat(communicators).isEqualTo(12);
  }

  @Test
  @DisplayName("P49: groups are destroyed in any order, on each rank in its own")
  void destroyInAnyOrder() throws Exception {
    List<String> unused = RankProcesses.run(2, "destroy-any-order", Map.of());
  }

  @Test
  @DisplayName("P41: two threads use a communicator each")
  void twoThreads() throws Exception {
    List<String> unused = RankProcesses.run(2, "two-threads", Map.of());
  }

  @Test
  void anAbortFreesARankThatWaits() throws Exception {
    assertThat(RankProcesses.run(2, "abort", Map.of()).get(0)).contains("freed");
  }

  @Test
  void aRankThatDoesNotComeToTheFirstCollectiveIsNamed() throws Exception {
    try (RankProcesses world = RankProcesses.start(3, "brief-absent", Map.of())) {
      for (int r : new int[] {0, 2}) {
        assertThat(world.ranks.get(r).end(90)).contains("named");
      }
    }
  }

  @Test
  void aCallThatConnectsToARankThatDoesNotComeEndsAtItsTimeout() throws Exception {
    try (RankProcesses world = RankProcesses.start(2, "brief-bound-stuck", Map.of())) {
      assertThat(world.ranks.get(0).end(90)).contains("freed");
    }
  }

  @Test
  void aRankThatDoesNotComeIsNoticedThoughNobodyWaits() throws Exception {
    try (RankProcesses world = RankProcesses.start(2, "brief-missing", Map.of())) {
      assertThat(world.ranks.get(0).end(90)).contains("noticed: all_reduce (seq 2) on rank 0");
    }
  }

  @Test
  @DisplayName("P34: posting a send never blocks, and awaiting it ends by name")
  void aSendThatNobodyReceives() throws Exception {
    try (RankProcesses world = RankProcesses.start(2, "brief-lonely-send", Map.of())) {
      assertThat(world.ranks.get(0).end(90)).contains("named");
    }
  }

  @Test
  void aKilledRankEndsTheOthersWithinSeconds() throws Exception {
    try (RankProcesses world = RankProcesses.start(3, "forever", Map.of())) {
      for (RankProcesses.Rank r : world.ranks) {
        r.awaitLine("running");
      }
      world.ranks.get(1).process.destroyForcibly();
      for (int r : new int[] {0, 2}) {
        assertThat(world.ranks.get(r).end(30))
            .contains("failed: PeerFailedException")
            .contains("rank 1 failed");
        assertThat(world.ranks.get(r).process.exitValue()).isEqualTo(3);
      }
    }
  }

  @Test
  @DisplayName("P62: null checks, thread dumps and termination work with NCCL loaded and busy")
  void signalsStayTheJvms() throws Exception {
    try (RankProcesses world = RankProcesses.start(2, "null-checks", Map.of())) {
      for (RankProcesses.Rank r : world.ranks) {
        r.awaitLine("null checks hold");
        r.awaitLine("running");
      }
      world.ranks.get(0).signal("QUIT");
      world.ranks.get(0).awaitLine("JNI global refs"); // the end of a thread dump
      for (RankProcesses.Rank r : world.ranks) {
        r.signal("TERM");
      }
      for (RankProcesses.Rank r : world.ranks) {
        if (!r.process.waitFor(20, TimeUnit.SECONDS)) {
          r.signal("QUIT"); // says where it is stuck
        }
        String unused = r.end(5);
        assertThat(r.process.exitValue()).isEqualTo(128 + 15);
      }
    }
  }

  @Test
  @DisplayName("P49: no close at all, then exit: nobody hangs")
  void exitWithoutClosing() throws Exception {
    try (RankProcesses world = RankProcesses.start(2, "no-close", Map.of())) {
      for (RankProcesses.Rank r : world.ranks) {
        assertThat(r.end(60)).contains("ending without closing");
        assertThat(r.process.exitValue()).isZero();
      }
    }
  }

  @Test
  @DisplayName("P40: two ranks on one GPU are explained")
  void twoRanksOnOneGpuAreExplained() throws Exception {
    try (RankProcesses world =
        RankProcesses.start(
            2, "collectives", Map.of("NCCL_HOSTID", "the same", "CUDA_VISIBLE_DEVICES", "0"))) {
      for (RankProcesses.Rank r : world.ranks) {
        String said = r.end(120);
        assertThat(r.process.exitValue()).as(said).isNotZero();
      }
      String all = world.ranks.get(0).end(1) + world.ranks.get(1).end(1);
      assertThat(all).contains("one rank a GPU").contains("NCCL_MULTI_RANK_GPU_ENABLE");
    }
  }
}
