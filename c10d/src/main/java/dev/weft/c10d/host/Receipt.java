package dev.weft.c10d.host;

import dev.weft.c10d.MismatchException;
import dev.weft.c10d.ProcessGroup;
import dev.weft.tensor.StridedTensor;

/**
 * A posted receive. Immutable but for its work.
 *
 * @param group the group's id
 * @param source the sender's group rank, or any
 * @param globalSource its global rank, or any
 * @param tag the sender gives the same
 * @param target where the data goes
 * @param work ends when it is there
 */
record Receipt(
    long group, int source, int globalSource, int tag, StridedTensor target, MessageWork work) {

  boolean takes(Parcel parcel) {
    return parcel.group() == group
        && parcel.tag() == tag
        && (source == ProcessGroup.ANY_SOURCE || source == parcel.source());
  }

  /** Copies the data and ends both sides; false when the sender has given up. */
  boolean take(Parcel parcel) {
    Payload payload = parcel.payload();
    if (!payload.acquire()) {
      return false;
    }
    if (parcel.numel() != target.numel() || parcel.dtype() != target.dtype()) {
      payload.release();
      MismatchException mismatch =
          new MismatchException(
              work.describe()
                  + " does not fit: "
                  + parcel.numel()
                  + " elements of "
                  + parcel.dtype()
                  + " were sent by "
                  + work.peerName(parcel.source())
                  + " with tag "
                  + parcel.tag()
                  + ", "
                  + target.numel()
                  + " of "
                  + target.dtype()
                  + " are expected");
      parcel.outcome().refused(mismatch);
      boolean unused = work.fail(mismatch);
      return true;
    }
    try {
      Layouts.unpack(payload.address(), target);
    } finally {
      payload.release();
    }
    work.arrivedFrom(parcel.source());
    // In this order: whoever sees the receive done may leave the world.
    parcel.outcome().taken();
    boolean unused = work.complete();
    return true;
  }
}
