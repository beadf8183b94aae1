package dev.weft.c10d.host;

import dev.weft.tensor.DType;
import dev.weft.tensor.memory.HostMemory;
import org.jspecify.annotations.Nullable;

/**
 * The way to one other rank. Thread-safe. What is sent under one key arrives once; sending never
 * waits for the peer to be ready.
 */
interface Link {
  /**
   * Sends a message of a collective.
   *
   * @param inline data to go along, or null
   */
  void send(Key key, int source, @Nullable Signature signature, byte @Nullable [] inline);

  /** Sends memory, which must stay as it is until {@code loans} are back. */
  void lend(Key key, int source, long address, long bytes, Loans loans);

  /**
   * Sends memory that is the message's from now on: it is freed when it has been read, or when
   * nobody will read it, and outlives its sender.
   *
   * @param address a block of {@link HostMemory}
   */
  void give(Key key, int source, long address, long bytes);

  /** Has the rank look again at what it waits for. */
  void wake();

  /**
   * Begins to look after the messages that come over this link, or answers to those sent.
   *
   * @return null where waiting busily brings nothing: another thread reads what comes
   */
  default @Nullable Attendance attend() {
    return null;
  }

  /** Prepares a message from rank to rank. */
  Posting prepare(Letter letter);

  /**
   * A message from rank to rank, as its sender sees it.
   *
   * @param group the group's id
   * @param source the sender's group rank
   * @param tag the receiver asks for the same
   * @param dtype of the elements
   * @param numel how many
   * @param piece the elements, row-major, which stay as they are until the outcome is told
   * @param outcome the sender's end
   */
  record Letter(
      long group,
      int source,
      int tag,
      DType dtype,
      long numel,
      Piece piece,
      Parcel.Outcome outcome) {}

  /** A message about to be sent, or sent. Thread-safe. */
  interface Posting {
    /** Sends it; never waits. */
    void post();

    /** Takes it back; false when it is being received or was, and the outcome is told. */
    boolean cancel();
  }
}
