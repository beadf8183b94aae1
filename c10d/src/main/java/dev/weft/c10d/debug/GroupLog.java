package dev.weft.c10d.debug;

import dev.weft.tensor.StridedTensor;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The calls of one group on one rank, numbered. Thread-safe, but for batches: those are the calls
 * between {@link #beginBatch} and {@link #endBatch} of one thread while no other calls the group.
 */
public final class GroupLog {
  private final FlightRecorder recorder;
  private final int id;
  private final String name;
  private final String description;
  private final List<Integer> ranks;
  private final int rank;
  private final String library;
  private final AtomicLong collectives = new AtomicLong();
  private final AtomicLong messages = new AtomicLong();
  private final AtomicLong operations = new AtomicLong();
  // Shapes of the last call, which the next one often has; a race costs a copy.
  private RecordedCall.Shapes lastOut = RecordedCall.Shapes.NONE;
  private RecordedCall.Shapes lastIn = RecordedCall.Shapes.NONE;
  private volatile long lastStarted = -1;
  private volatile long lastCompleted = -1;
  private boolean batch;

  GroupLog(
      FlightRecorder recorder,
      int id,
      String name,
      String description,
      List<Integer> ranks,
      int rank,
      String library) {
    this.recorder = recorder;
    this.id = id;
    this.name = name;
    this.description = description;
    this.ranks = List.copyOf(ranks);
    this.rank = rank;
    this.library = library;
  }

  /**
   * Records a collective.
   *
   * @param operation its name in dumps
   * @param outputs what it writes
   * @param inputs what it reads; empty where it works in place
   * @param timeoutMillis how long it may take
   */
  public RecordedCall collective(
      String operation,
      List<StridedTensor> outputs,
      List<StridedTensor> inputs,
      long timeoutMillis) {
    long sequence = collectives.incrementAndGet();
    RecordedCall.Shapes out = RecordedCall.Shapes.of(outputs, lastOut);
    RecordedCall.Shapes in = inputs.isEmpty() ? out : RecordedCall.Shapes.of(inputs, lastIn);
    lastOut = out;
    lastIn = in;
    return record(operation, -1, false, sequence, messages.get(), in, out, timeoutMillis);
  }

  /**
   * Records a send or a receive.
   *
   * @param operation {@code send} or {@code recv}
   * @param peer the other side's group rank, or -1 for any
   * @param tensors the one that travels
   * @param timeoutMillis how long it may take
   */
  public RecordedCall message(
      String operation, int peer, List<StridedTensor> tensors, long timeoutMillis) {
    long sequence = batch ? messages.get() : messages.incrementAndGet();
    RecordedCall.Shapes one = RecordedCall.Shapes.of(tensors, lastOut);
    lastOut = one;
    return record(operation, peer, true, collectives.get(), sequence, one, one, timeoutMillis);
  }

  /** Starts a batch: its messages share one number. */
  public void beginBatch() {
    batch = true;
    long unused = messages.incrementAndGet();
  }

  /** Ends a batch with a record of its own. */
  public RecordedCall endBatch(long timeoutMillis) {
    batch = false;
    return record(
        "coalesced",
        -1,
        true,
        collectives.get(),
        messages.get(),
        RecordedCall.Shapes.NONE,
        RecordedCall.Shapes.NONE,
        timeoutMillis);
  }

  private RecordedCall record(
      String operation,
      int peer,
      boolean p2p,
      long collectiveSeq,
      long p2pSeq,
      RecordedCall.Shapes in,
      RecordedCall.Shapes out,
      long timeoutMillis) {
    RecordedCall call =
        new RecordedCall(
            this,
            recorder.nextId(),
            operations.incrementAndGet(),
            collectiveSeq,
            p2pSeq,
            operation,
            peer,
            p2p,
            in,
            out,
            timeoutMillis,
            recorder.now(),
            recorder.stack());
    recorder.keep(call);
    return call;
  }

  void started(long sequence) {
    if (sequence > lastStarted) {
      lastStarted = sequence;
    }
  }

  void completed(long sequence) {
    if (sequence > lastCompleted) {
      lastCompleted = sequence;
    }
  }

  /** The number of collectives called so far. */
  public long lastEnqueued() {
    return collectives.get();
  }

  /** The newest collective known to have ended well, or -1. */
  public long lastCompleted() {
    return lastCompleted;
  }

  long lastStarted() {
    return lastStarted;
  }

  long now() {
    return recorder.now();
  }

  int id() {
    return id;
  }

  /** The group's name. */
  public String name() {
    return name;
  }

  String description() {
    return description;
  }

  List<Integer> ranks() {
    return ranks;
  }

  int rank() {
    return rank;
  }

  String library() {
    return library;
  }
}
