package dev.weft.c10d;

import dev.weft.tensor.op.Attrs;
import org.jspecify.annotations.Nullable;

/**
 * A collective, or a message, on its way through the dispatcher: for interceptors that want to see
 * its {@link Work}. It is the attribute {@link #ATTRIBUTE} of every {@code c10d.*} operator. Used
 * on the calling thread.
 */
public interface CollectiveCall {
  /** The position among the attributes of the operator. */
  int ATTRIBUTE = 4;

  /** The call that an operator's attributes carry, or null where the operator is no collective. */
  static @Nullable CollectiveCall of(Attrs attrs) {
    return attrs.size() > ATTRIBUTE && attrs.get(ATTRIBUTE) instanceof CollectiveCall call
        ? call
        : null;
  }

  /** In which group. */
  ProcessGroup group();

  /** Whether the caller waits by itself, later. */
  boolean isAsync();

  /**
   * The work under way.
   *
   * @throws IllegalStateException before the call has proceeded
   */
  Work work();

  /**
   * Gives the caller another work in its place, which must end when the present one does.
   *
   * @throws IllegalStateException before the call has proceeded
   */
  void replaceWork(Work other);
}
