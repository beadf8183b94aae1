package dev.weft.c10d.host;

import dev.weft.tensor.DType;

/**
 * A message from rank to rank, as its receiver sees it. Immutable but for its payload.
 *
 * @param group the group's id
 * @param source the sender's group rank
 * @param tag the receiver asks for the same
 * @param dtype of the elements
 * @param numel how many
 * @param payload the elements, row-major
 * @param outcome the sender's end
 */
record Parcel(
    long group, int source, int tag, DType dtype, long numel, Payload payload, Outcome outcome) {

  /** What the sender is told, once. */
  interface Outcome {
    /** The receiver has the data. */
    void taken();

    /** The receiver could not take it. */
    void refused(RuntimeException why);
  }
}
