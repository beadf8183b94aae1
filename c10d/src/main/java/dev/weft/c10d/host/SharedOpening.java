package dev.weft.c10d.host;

import dev.weft.c10d.DistributedException;
import dev.weft.c10d.MismatchException;
import dev.weft.tensor.memory.Memory;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The opening of a collective in shared memory: each rank says what it calls, and sees what the
 * others do. There are two places, used in turn: a rank that has opened call s + 1 has done with
 * call s - 1, so nobody reads what call s + 1 overwrites. Used by one thread at a time.
 */
final class SharedOpening {
  private final SharedSegment segment;
  private final HostGroup group;
  private final SharedWait wait;
  private final byte[][] written = {{}, {}};
  private byte[] call = {};
  private @Nullable Signature encoded;
  private boolean fitsItself;

  SharedOpening(SharedSegment segment, HostGroup group, SharedWait wait) {
    this.segment = segment;
    this.group = group;
    this.wait = wait;
  }

  /**
   * Says what this rank calls, with all that it has written before, and waits for the others.
   *
   * @return what each rank calls, or null where all call the very same
   * @throws MismatchException if the calls do not fit
   */
  Signature @Nullable [] open(Round round, Signature own) {
    long sequence = round.sequence();
    byte[] bytes = encode(own);
    int parity = (int) (sequence & 1);
    long place = segment.call(group.rank(), sequence);
    if (written[parity] != bytes) {
      Memory.putInt(place, bytes.length);
      Memory.put(place + 4, bytes, 0, bytes.length);
      written[parity] = bytes;
    }
    wait.set(SharedLayout.OPENED, sequence);
    wait.all(round, SharedLayout.OPENED, sequence, SharedWait.NOT_ARRIVED);
    boolean same = fitsItself;
    for (int r = 0; r < group.size() && same; r++) {
      same = r == group.rank() || equals(segment.call(r, sequence), place, bytes.length);
    }
    if (same) {
      return null;
    }
    Signature[] calls = new Signature[group.size()];
    for (int r = 0; r < calls.length; r++) {
      calls[r] = r == group.rank() ? own : Frame.decode(read(segment.call(r, sequence)));
    }
    Agreement.check(group.describe(), sequence, group.globalRanks(), calls);
    return calls;
  }

  private byte[] encode(Signature own) {
    if (!own.isSameAs(encoded)) {
      byte[] bytes = Frame.encode(own);
      if (bytes.length > segment.layout().callBytes()) {
        throw new DistributedException(
            own.operation()
                + " takes "
                + bytes.length
                + " bytes to describe; "
                + segment.layout().callBytes()
                + " are the most in shared memory");
      }
      Signature[] all = new Signature[group.size()];
      Arrays.fill(all, own);
      fitsItself = Agreement.fit(all);
      call = bytes;
      encoded = own;
    }
    return call;
  }

  private static boolean equals(long a, long b, int length) {
    if (Memory.getInt(a) != length) {
      return false;
    }
    int at = 4;
    for (; at + 8 <= 4 + length; at += 8) {
      if (Memory.getLong(a + at) != Memory.getLong(b + at)) {
        return false;
      }
    }
    for (; at < 4 + length; at++) {
      if (Memory.getByte(a + at) != Memory.getByte(b + at)) {
        return false;
      }
    }
    return true;
  }

  private byte[] read(long place) {
    int n = Memory.getInt(place);
    if (n < 0 || n > segment.layout().callBytes()) {
      throw new DistributedException("shared memory names a call of " + n + " bytes");
    }
    byte[] out = new byte[n];
    Memory.get(place + 4, out, 0, n);
    return out;
  }
}
