package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclGroupEnd;
import static org.bytedeco.cuda.global.nccl.ncclGroupStart;
import static org.bytedeco.cuda.global.nccl.ncclInProgress;
import static org.bytedeco.cuda.global.nccl.ncclRecv;
import static org.bytedeco.cuda.global.nccl.ncclSend;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import org.bytedeco.cuda.cudart.CUstream_st;

/**
 * Many sends and receives of one rank, given to NCCL in groups of bounded size. Used by one thread.
 *
 * <p>NCCL plans a large group by itself, and the plans of two ranks can differ then. So the order
 * is made here: the k-th message from rank a to rank b belongs to round k * n + (b - a) mod n,
 * which both sides compute alike, and so many rounds make a group. A rank has at most one send and
 * one receive in a round.
 */
final class Exchange implements NcclCommunicator.Body {
  /** Rounds in a group. */
  static final int ROUNDS = 128;

  private final String operation;
  private final int rank;
  private final int size;
  private final int[] sends;
  private final int[] receives;
  private final List<Part> parts = new ArrayList<>();

  /** One message. */
  record Part(boolean send, int peer, long address, long count, int dtype, long round) {}

  Exchange(String operation, int rank, int size) {
    this.operation = operation;
    this.rank = rank;
    this.size = size;
    this.sends = new int[size];
    this.receives = new int[size];
  }

  /** Empty messages are left out, on both sides alike. */
  Exchange send(int peer, long address, long count, int dtype) {
    if (count > 0) {
      parts.add(new Part(true, peer, address, count, dtype, round(sends[peer]++, peer - rank)));
    }
    return this;
  }

  Exchange receive(int peer, long address, long count, int dtype) {
    if (count > 0) {
      parts.add(new Part(false, peer, address, count, dtype, round(receives[peer]++, rank - peer)));
    }
    return this;
  }

  private long round(int number, int distance) {
    return (long) number * size + Math.floorMod(distance, size);
  }

  /** The groups in the order of their rounds. */
  List<List<Part>> groups() {
    parts.sort(Comparator.comparingLong(Part::round));
    List<List<Part>> groups = new ArrayList<>();
    long last = -1;
    for (Part p : parts) {
      long group = p.round() / ROUNDS;
      if (group != last) {
        groups.add(new ArrayList<>());
        last = group;
      }
      groups.get(groups.size() - 1).add(p);
    }
    return groups;
  }

  @Override
  public int run(NcclCommunicator communicator, CUstream_st stream) {
    int code = ncclSuccess;
    for (List<Part> group : groups()) {
      communicator.settle(operation, code);
      code = runGroup(communicator, stream, group);
    }
    return code;
  }

  private static int runGroup(NcclCommunicator c, CUstream_st stream, List<Part> group) {
    int begun = ncclGroupStart();
    if (begun != ncclSuccess) {
      return begun;
    }
    int bad = ncclSuccess;
    for (Part p : group) {
      int code =
          p.send()
              ? ncclSend(c.source(p.address()), p.count(), p.dtype(), p.peer(), c.handle(), stream)
              : ncclRecv(c.target(p.address()), p.count(), p.dtype(), p.peer(), c.handle(), stream);
      if (code != ncclSuccess && code != ncclInProgress && bad == ncclSuccess) {
        bad = code;
      }
    }
    int code = ncclGroupEnd();
    return bad != ncclSuccess ? bad : code;
  }
}
