package dev.weft.c10d.host;

/**
 * Where things lie in a {@link SharedSegment}: a page that says what it is, then a region for each
 * rank, which that rank alone writes. A region has the rank's counters, two places for what it
 * calls with two for the data that go along (odd and even calls), and {@link #SLOTS} slots for
 * larger data. All ranks use the layout of the one that made the segment. Immutable.
 *
 * @param ranks of the group
 * @param inlineBytes the most that goes along with a call
 * @param slotBytes the length of a slot
 */
record SharedLayout(int ranks, int inlineBytes, int slotBytes) {
  static final int SLOTS = 4;
  static final int PAGE = 4096;

  /** How long a call may be. */
  private static final int CALL_BYTES = 2 * PAGE;

  private static final int COUNTERS = PAGE;

  /** Counters lie so far apart that no processor fetches two together. */
  private static final int APART = 128;

  /** The number of a rank's last call. */
  static final int OPENED = 0;

  /** The steps whose data a rank has put into its slots. */
  static final int WRITTEN = APART;

  /** The steps whose data a rank has taken from the others. */
  static final int READ = 2 * APART;

  /** The last step in which a rank has begun to read memory that others lend. */
  static final int READING = 3 * APART;

  /** Which counter of which rank this one sleeps for; zero when it is awake. */
  static final int SLEEPING = 5 * APART;

  /** The processor on which a rank was when it last waited, plus one. */
  static final int PROCESSOR = 6 * APART;

  /** Not zero when a rank can wake others that sleep on their words. */
  static final int WAKES = 7 * APART;

  /** Not zero when a rank has given up, and lends nothing any more. */
  static final int REVOKED = 4 * APART;

  SharedLayout {
    if (ranks < 2 || inlineBytes < 0 || slotBytes < 1) {
      throw new IllegalArgumentException(
          "ranks " + ranks + ", inlineBytes " + inlineBytes + ", slotBytes " + slotBytes);
    }
    inlineBytes = pages(inlineBytes);
    slotBytes = pages(slotBytes);
  }

  private static int pages(int bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
  }

  /** The most bytes of a call that fit. */
  int callBytes() {
    return CALL_BYTES + 32 * ranks;
  }

  private int callPlace() {
    return pages(4 + callBytes());
  }

  private long regionBytes() {
    return COUNTERS + 2L * (callPlace() + inlineBytes) + (long) SLOTS * slotBytes;
  }

  long bytes() {
    return PAGE + ranks * regionBytes();
  }

  private long region(int rank) {
    return PAGE + rank * regionBytes();
  }

  long counter(int rank, int which) {
    return region(rank) + which;
  }

  long call(int rank, long sequence) {
    return region(rank) + COUNTERS + (sequence & 1) * callPlace();
  }

  long inline(int rank, long sequence) {
    return region(rank) + COUNTERS + 2L * callPlace() + (sequence & 1) * inlineBytes;
  }

  long slot(int rank, long step) {
    return region(rank)
        + COUNTERS
        + 2L * (callPlace() + inlineBytes)
        + (step & (SLOTS - 1)) * slotBytes;
  }
}
