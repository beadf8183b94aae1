package dev.weft.c10d.faults;

import dev.weft.c10d.Acquaintance;
import dev.weft.c10d.CollectiveOptions;
import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.ProcessRanks;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Where in a world's life a fault happens: what the ranks do until then, and what they do then. */
enum Stage {
  RENDEZVOUS("before the world is made"),
  CONNECT("while the ranks connect"),
  BEFORE_COLLECTIVE("before a collective"),
  DURING_LARGE("during large all-reduces"),
  DURING_SMALL("during small all-reduces"),
  DURING_MESSAGES("during large messages"),
  ASYNC("with collectives under way"),
  AFTER_COLLECTIVE("after a collective, found by the next"),
  SEND("while others send to it"),
  RECEIVE("while others receive from it"),
  BARRIER("at a barrier"),
  MONITORED_BARRIER("at a monitored barrier"),
  DESTROY("while the world is left");

  static final Duration TIMEOUT = Duration.ofSeconds(3);

  static final CollectiveOptions BRIEF = CollectiveOptions.SYNC.withTimeout(TIMEOUT);
  private static final CollectiveOptions BRIEF_ASYNC = CollectiveOptions.ASYNC.withTimeout(TIMEOUT);

  /** Enough rounds to outlast every fault. */
  private static final int FOREVER = 1_000_000;

  private final String words;

  Stage(String words) {
    this.words = words;
  }

  @Override
  public String toString() {
    return words;
  }

  /** Whether the ranks are busy together when the fault comes, and not waiting for one of them. */
  boolean isLoop() {
    return this == DURING_LARGE || this == DURING_SMALL || this == DURING_MESSAGES;
  }

  /** Brings a rank to the stage. */
  void arrive(RankContext rank) {
    if (this != RENDEZVOUS && this != CONNECT) {
      ProcessRanks.connect(rank);
      sum(rank.world(), 100, CollectiveOptions.SYNC);
      if (this == SEND || this == RECEIVE || this == DURING_MESSAGES) {
        Acquaintance.make(rank.world());
      }
    }
  }

  /** What a rank does at the stage; the victim does the same where it is a loop. */
  void act(RankContext rank, int victim) {
    ProcessGroup world = rank.world();
    Tensor t = Tensor.of(new float[1000]);
    switch (this) {
      case RENDEZVOUS, CONNECT -> ProcessRanks.connect(rank);
      case BEFORE_COLLECTIVE, AFTER_COLLECTIVE -> sum(world, 100_000, BRIEF);
      case DURING_LARGE -> loop(world, 3_000_000);
      case DURING_SMALL -> loop(world, 10);
      case DURING_MESSAGES -> {
        for (int i = 0; i < FOREVER; i++) {
          exchange(world, victim, 300_000, i);
        }
      }
      case ASYNC -> {
        Work[] works = new Work[8];
        for (int i = 0; i < works.length; i++) {
          works[i] = world.allReduce(Tensor.of(new float[50_000]), ReduceOp.SUM, BRIEF_ASYNC);
        }
        Arrays.stream(works).forEach(Work::await);
      }
      case SEND -> world.send(Tensor.of(new float[2_000_000]), victim, 1, BRIEF).await();
      case RECEIVE -> world.recv(t, victim, 1, BRIEF).await();
      case BARRIER -> world.barrier(BRIEF).await();
      case MONITORED_BARRIER -> world.monitoredBarrier(TIMEOUT, true);
      case DESTROY -> ProcessRanks.leave(rank);
    }
  }

  private static void loop(ProcessGroup world, int n) {
    for (int i = 0; i < FOREVER; i++) {
      sum(world, n, BRIEF);
    }
  }

  /** Messages between the victim and all others, whose every element is checked. */
  private static void exchange(ProcessGroup world, int victim, int n, float base) {
    try (TensorScope scope = TensorScope.open()) {
      List<Tensor> received = new ArrayList<>();
      List<Work> works = new ArrayList<>();
      for (int p = 0; p < world.size(); p++) {
        Tensor t = Tensor.of(new float[n]);
        received.add(t);
        if (p != world.rank() && (p == victim || world.rank() == victim)) {
          Tensor sent = t.add(base + world.rank());
          works.add(world.recv(t, p, 2, BRIEF_ASYNC));
          works.add(world.send(sent, p, 2, BRIEF_ASYNC));
        }
      }
      works.forEach(Work::await);
      for (int p = 0; p < world.size(); p++) {
        boolean came = p != world.rank() && (p == victim || world.rank() == victim);
        for (float f : received.get(p).toFloatArray()) {
          if (f != (came ? base + p : 0)) {
            throw new AssertionError("a wrong message from rank " + p + ": " + f);
          }
        }
      }
    }
  }

  /** One all-reduce whose every element is checked: there is no wrong result. */
  static void sum(ProcessGroup world, int n, CollectiveOptions options) {
    float[] values = new float[n];
    for (int i = 0; i < n; i++) {
      values[i] = world.rank() + i % 7;
    }
    try (TensorScope scope = TensorScope.open()) {
      Tensor t = Tensor.of(values);
      world.allReduce(t, ReduceOp.SUM, options).await();
      float[] got = t.toFloatArray();
      int size = world.size();
      float ranks = size * (size - 1) / 2f;
      for (int i = 0; i < n; i++) {
        if (got[i] != ranks + size * (i % 7)) {
          throw new AssertionError(
              "a wrong result at " + i + ": " + got[i] + ", expected " + (ranks + size * (i % 7)));
        }
      }
    }
  }
}
