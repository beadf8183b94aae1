package dev.weft.c10d;

import dev.weft.tensor.Tensor;
import org.jspecify.annotations.Nullable;

/**
 * A send or a receive of a batch, for {@link Distributed#batchIsendIrecv}. Immutable.
 *
 * @param kind whether the tensor is sent or received
 * @param tensor what is sent, or where the data goes
 * @param peer the other side, a global rank
 * @param tag zero or more; the same on both sides
 * @param group the group, or null for the world; the same for all of a batch
 */
public record P2POp(Kind kind, Tensor tensor, int peer, int tag, @Nullable ProcessGroup group) {
  /** The two directions. */
  public enum Kind {
    /** The tensor is sent. */
    ISEND,
    /** The tensor is received. */
    IRECV
  }

  /** A send in the world, with tag 0. */
  public static P2POp isend(Tensor tensor, int peer) {
    return new P2POp(Kind.ISEND, tensor, peer, 0, null);
  }

  /** A receive in the world, with tag 0. */
  public static P2POp irecv(Tensor tensor, int peer) {
    return new P2POp(Kind.IRECV, tensor, peer, 0, null);
  }

  /** The same with a tag. */
  public P2POp withTag(int tag) {
    return new P2POp(kind, tensor, peer, tag, group);
  }

  /** The same in a group. */
  public P2POp in(ProcessGroup group) {
    return new P2POp(kind, tensor, peer, tag, group);
  }
}
