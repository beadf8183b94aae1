package dev.weft.parallel.pipeline;

/**
 * One thing that a rank does.
 *
 * @param kind forward or backward
 * @param stage of the whole pipeline, from 0
 * @param microbatch from 0
 */
record Action(Kind kind, int stage, int microbatch) {
  enum Kind {
    FORWARD,
    BACKWARD
  }

  static Action forward(int stage, int microbatch) {
    return new Action(Kind.FORWARD, stage, microbatch);
  }

  static Action backward(int stage, int microbatch) {
    return new Action(Kind.BACKWARD, stage, microbatch);
  }

  boolean isForward() {
    return kind == Kind.FORWARD;
  }

  @Override
  public String toString() {
    return stage + (isForward() ? "F" : "B") + microbatch;
  }
}
