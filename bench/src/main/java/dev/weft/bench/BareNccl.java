package dev.weft.bench;

import static org.bytedeco.cuda.global.nccl.NCCL_UNIQUE_ID_BYTES;
import static org.bytedeco.cuda.global.nccl.ncclAllGather;
import static org.bytedeco.cuda.global.nccl.ncclAllReduce;
import static org.bytedeco.cuda.global.nccl.ncclAlltoAll;
import static org.bytedeco.cuda.global.nccl.ncclBroadcast;
import static org.bytedeco.cuda.global.nccl.ncclCommDestroy;
import static org.bytedeco.cuda.global.nccl.ncclCommInitRank;
import static org.bytedeco.cuda.global.nccl.ncclFloat32;
import static org.bytedeco.cuda.global.nccl.ncclGetErrorString;
import static org.bytedeco.cuda.global.nccl.ncclGetUniqueId;
import static org.bytedeco.cuda.global.nccl.ncclGroupEnd;
import static org.bytedeco.cuda.global.nccl.ncclGroupStart;
import static org.bytedeco.cuda.global.nccl.ncclRecv;
import static org.bytedeco.cuda.global.nccl.ncclReduceScatter;
import static org.bytedeco.cuda.global.nccl.ncclSend;
import static org.bytedeco.cuda.global.nccl.ncclSuccess;
import static org.bytedeco.cuda.global.nccl.ncclSum;

import dev.weft.c10d.ObjectCollectives;
import dev.weft.c10d.ProcessGroup;
import dev.weft.tensor.cuda.CudaStream;
import dev.weft.tensor.cuda.RawPointer;
import java.util.Base64;
import java.util.List;
import java.util.Objects;
import org.bytedeco.cuda.nccl.ncclComm;
import org.bytedeco.cuda.nccl.ncclUniqueId;

/**
 * NCCL called as the bindings have it, with nothing around: what Weft's own calls are held against.
 * Counts are of float32 elements, addresses of device memory. One thread.
 */
final class BareNccl implements AutoCloseable {
  private final ncclComm comm;
  private final CudaStream stream;
  private final int rank;
  private final int size;
  private final RawPointer source = new RawPointer();
  private final RawPointer target = new RawPointer();

  private BareNccl(ncclComm comm, CudaStream stream, int rank, int size) {
    this.comm = comm;
    this.stream = stream;
    this.rank = rank;
    this.size = size;
  }

  /** Makes a communicator of the group's ranks, each on its current device; all ranks call it. */
  static BareNccl join(ProcessGroup group, CudaStream stream) {
    try (ncclUniqueId id = new ncclUniqueId()) {
      byte[] bytes = new byte[NCCL_UNIQUE_ID_BYTES];
      if (group.rank() == 0) {
        check("ncclGetUniqueId", ncclGetUniqueId(id));
        id.internal().get(bytes);
      }
      List<String> shared =
          ObjectCollectives.broadcastObjectList(
              List.of(Base64.getEncoder().encodeToString(bytes)), String.class, 0, group);
      id.internal().put(Base64.getDecoder().decode(Objects.requireNonNull(shared.get(0))));
      ncclComm comm = new ncclComm();
      check("ncclCommInitRank", ncclCommInitRank(comm, group.size(), id, group.rank()));
      return new BareNccl(comm, stream, group.rank(), group.size());
    }
  }

  private static void check(String call, int code) {
    if (code != ncclSuccess) {
      throw new IllegalStateException(call + ": " + ncclGetErrorString(code).getString());
    }
  }

  void allReduce(long at, long count) {
    check(
        "ncclAllReduce",
        ncclAllReduce(
            source.at(at), target.at(at), count, ncclFloat32, ncclSum, comm, stream.handle()));
  }

  /** {@code count} elements from each rank. */
  void allGather(long from, long to, long count) {
    check(
        "ncclAllGather",
        ncclAllGather(source.at(from), target.at(to), count, ncclFloat32, comm, stream.handle()));
  }

  /** {@code count} elements for each rank. */
  void reduceScatter(long from, long to, long count) {
    check(
        "ncclReduceScatter",
        ncclReduceScatter(
            source.at(from), target.at(to), count, ncclFloat32, ncclSum, comm, stream.handle()));
  }

  /** {@code count} elements between each two ranks. */
  void allToAll(long from, long to, long count) {
    check(
        "ncclAlltoAll",
        ncclAlltoAll(source.at(from), target.at(to), count, ncclFloat32, comm, stream.handle()));
  }

  void broadcast(long at, long count) {
    check(
        "ncclBroadcast",
        ncclBroadcast(source.at(at), target.at(at), count, ncclFloat32, 0, comm, stream.handle()));
  }

  /** To the next rank, and from the one before. */
  void sendReceive(long from, long to, long count) {
    check("ncclGroupStart", ncclGroupStart());
    int sent =
        ncclSend(source.at(from), count, ncclFloat32, (rank + 1) % size, comm, stream.handle());
    int received =
        ncclRecv(
            target.at(to), count, ncclFloat32, (rank + size - 1) % size, comm, stream.handle());
    check("ncclGroupEnd", ncclGroupEnd());
    check("ncclSend", sent);
    check("ncclRecv", received);
  }

  @Override
  public void close() {
    stream.synchronize();
    check("ncclCommDestroy", ncclCommDestroy(comm));
  }
}
