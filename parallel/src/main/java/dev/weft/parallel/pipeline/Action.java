package dev.weft.parallel.pipeline;

/**
 * One thing that a rank does.
 *
 * @param kind what
 * @param stage of the whole pipeline, from 0
 * @param microbatch from 0
 */
record Action(Kind kind, int stage, int microbatch) {
  enum Kind {
    /** The forward computation. */
    FORWARD("F", 1),
    /** All of backward. */
    BACKWARD("B", 2),
    /** The part of backward that the stage before waits for. */
    INPUT("I", 1),
    /** The rest of it: the gradients of the weights. */
    WEIGHT("W", 1);

    private final String letter;
    private final int cost;

    Kind(String letter, int cost) {
      this.letter = letter;
      this.cost = cost;
    }

    /** What theory takes it to last. */
    int cost() {
      return cost;
    }
  }

  static Action forward(int stage, int microbatch) {
    return new Action(Kind.FORWARD, stage, microbatch);
  }

  static Action backward(int stage, int microbatch) {
    return new Action(Kind.BACKWARD, stage, microbatch);
  }

  static Action input(int stage, int microbatch) {
    return new Action(Kind.INPUT, stage, microbatch);
  }

  static Action weight(int stage, int microbatch) {
    return new Action(Kind.WEIGHT, stage, microbatch);
  }

  boolean isForward() {
    return kind == Kind.FORWARD;
  }

  /** Whether it starts with gradients from later stages and ends with those for earlier ones. */
  boolean passesGradients() {
    return kind == Kind.BACKWARD || kind == Kind.INPUT;
  }

  /** Whether what forward has kept is gone after it. */
  boolean isLast() {
    return kind == Kind.BACKWARD || kind == Kind.WEIGHT;
  }

  /** The kind and the microbatch. */
  String label() {
    return kind.letter + microbatch;
  }

  @Override
  public String toString() {
    return stage + label();
  }
}
