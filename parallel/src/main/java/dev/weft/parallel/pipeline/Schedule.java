package dev.weft.parallel.pipeline;

import java.util.ArrayList;
import java.util.List;

/**
 * In which order the ranks of a pipeline run forwards and backwards. Stage s lies on rank s modulo
 * the number of ranks. Backwards of a stage run in ascending order of microbatches, so all
 * schedules sum gradients in the same order.
 */
public enum Schedule {
  /** All forwards, then all backwards. Holds the activations of all microbatches. */
  GPIPE {
    @Override
    List<Action> actions(int rank, int ranks, int stagesPerRank, int microbatches) {
      List<Action> list = new ArrayList<>();
      for (int v = 0; v < stagesPerRank; v++) {
        for (int m = 0; m < microbatches; m++) {
          list.add(Action.forward(v * ranks + rank, m));
        }
      }
      for (int v = stagesPerRank - 1; v >= 0; v--) {
        for (int m = 0; m < microbatches; m++) {
          list.add(Action.backward(v * ranks + rank, m));
        }
      }
      return list;
    }
  },

  /**
   * A backward as soon as there is one, then a forward in turn: no faster than {@link #GPIPE}, but
   * a rank holds the activations of at most as many microbatches as there are stages from it on.
   */
  ONE_F_ONE_B {
    @Override
    List<Action> actions(int rank, int ranks, int stagesPerRank, int microbatches) {
      require(stagesPerRank == 1, "1 stage on each rank; INTERLEAVED takes more", stagesPerRank);
      List<Action> forwards = new ArrayList<>();
      List<Action> backwards = new ArrayList<>();
      for (int m = 0; m < microbatches; m++) {
        forwards.add(Action.forward(rank, m));
        backwards.add(Action.backward(rank, m));
      }
      return alternate(forwards, backwards, ranks - rank - 1);
    }
  },

  /**
   * The same with several stages on each rank, which makes the bubble smaller by their number. The
   * number of microbatches must be a multiple of that of ranks.
   */
  INTERLEAVED {
    @Override
    List<Action> actions(int rank, int ranks, int stagesPerRank, int microbatches) {
      if (microbatches % ranks != 0) {
        throw new IllegalArgumentException(
            "schedule INTERLEAVED: "
                + microbatches
                + " microbatches on "
                + ranks
                + " ranks; expected a multiple of the ranks");
      }
      List<Action> forwards = new ArrayList<>();
      List<Action> backwards = new ArrayList<>();
      int round = ranks * stagesPerRank;
      for (int k = 0; k < microbatches * stagesPerRank; k++) {
        int v = k / ranks % stagesPerRank;
        int m = k / round * ranks + k % ranks;
        forwards.add(Action.forward(v * ranks + rank, m));
        backwards.add(Action.backward((stagesPerRank - 1 - v) * ranks + rank, m));
      }
      return alternate(forwards, backwards, 2 * (ranks - rank - 1) + (stagesPerRank - 1) * ranks);
    }
  },

  /**
   * {@link #ONE_F_ONE_B} whose backward is in two passes: the gradients that the stage before waits
   * for at once, those of the weights later, where ranks would wait. The bubble is a third; a rank
   * holds the activations of at most as many microbatches as there are ranks. The schedule ZB-H1 of
   * Qi et al., "Zero Bubble Pipeline Parallelism", 2023.
   */
  ZB_H1 {
    @Override
    List<Action> actions(int rank, int ranks, int stagesPerRank, int microbatches) {
      require(stagesPerRank == 1, "1 stage on each rank", stagesPerRank);
      List<Action> list = new ArrayList<>();
      for (Action a : ONE_F_ONE_B.actions(rank, ranks, 1, microbatches)) {
        if (a.isForward()) {
          list.add(a);
          continue;
        }
        list.add(Action.input(rank, a.microbatch()));
        // The later the stage, the longer others wait for its inputs' gradients.
        if (a.microbatch() >= rank) {
          list.add(Action.weight(rank, a.microbatch() - rank));
        }
      }
      for (int m = Math.max(0, microbatches - rank); m < microbatches; m++) {
        list.add(Action.weight(rank, m));
      }
      return list;
    }
  };

  /** What a rank does, in order. */
  abstract List<Action> actions(int rank, int ranks, int stagesPerRank, int microbatches);

  void require(boolean holds, String expected, int got) {
    if (!holds) {
      throw new IllegalArgumentException(
          "schedule " + this + ": " + got + " stages on each rank; expected " + expected);
    }
  }

  /** Some forwards, then a forward and a backward in turn, then what is left. */
  private static List<Action> alternate(List<Action> forwards, List<Action> backwards, int warmup) {
    int first = Math.min(warmup, forwards.size());
    List<Action> list = new ArrayList<>(forwards.subList(0, first));
    for (int i = first; i < forwards.size(); i++) {
      list.add(forwards.get(i));
      list.add(backwards.get(i - first));
    }
    list.addAll(backwards.subList(forwards.size() - first, backwards.size()));
    return list;
  }

  /**
   * When every rank does what, if a forward takes one unit of time and a backward two, or one for
   * each of its passes.
   *
   * @throws IllegalArgumentException if the schedule cannot run with these numbers
   */
  public Timeline timeline(int ranks, int stagesPerRank, int microbatches) {
    if (ranks < 1 || stagesPerRank < 1 || microbatches < 1) {
      throw new IllegalArgumentException(
          "schedule "
              + this
              + ": "
              + ranks
              + " ranks, "
              + stagesPerRank
              + " stages on each and "
              + microbatches
              + " microbatches; expected at least 1 of each");
    }
    List<List<Action>> all = new ArrayList<>();
    for (int r = 0; r < ranks; r++) {
      all.add(actions(r, ranks, stagesPerRank, microbatches));
    }
    return Timeline.of(this, all, ranks * stagesPerRank);
  }
}
