package dev.weft.c10d.mpi;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.weft.c10d.Deadline;
import dev.weft.c10d.RankContext;
import dev.weft.c10d.RendezvousException;
import dev.weft.c10d.StoreTimeoutException;
import dev.weft.c10d.host.Fabric;
import dev.weft.c10d.store.Store;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** One world over MPI: a communicator of its own, so that no message of an earlier world comes. */
final class MpiFabric implements Fabric {
  private static final int CHUNK = 1 << 16;
  private static final int TAG = 1;

  /** All libraries have at least so many tags. */
  private static final int TAGS = 32_768;

  private final MpiRuntime runtime;
  private final MpiAbi abi;
  private final long scratch; // the communicator, a flag, a status
  private final long comm;

  private MpiFabric(MpiRuntime runtime, long scratch) {
    this.runtime = runtime;
    this.abi = runtime.abi();
    this.scratch = scratch;
    this.comm = abi.handle(scratch);
  }

  /** Makes the fabric of a rank when all ranks of its world have come. */
  static MpiFabric of(RankContext context) {
    if (context.isThreadWorld()) {
      throw new UnsupportedOperationException(
          "backend 'mpi' needs a process for each rank; expected ranks that 'weft run --mpi' or"
              + " mpirun started, not a world of threads");
    }
    MpiRuntime runtime = MpiRuntime.start();
    if (runtime.rank() != context.rank() || runtime.size() != context.worldSize()) {
      throw new IllegalStateException(
          "this is rank "
              + context.rank()
              + " of "
              + context.worldSize()
              + ", and rank "
              + runtime.rank()
              + " of "
              + runtime.size()
              + " for "
              + runtime.version()
              + "; expected the same: start all ranks together with 'weft run --mpi' or mpirun,"
              + " whose MPI must be the library that is loaded (see "
              + MpiLibrary.VARIABLE
              + ")");
    }
    Deadline deadline = Deadline.after(context.timeout());
    awaitAll(context, deadline);
    MpiAbi abi = runtime.abi();
    long scratch = HostMemory.allocate(16 + MpiAbi.STATUS_BYTES);
    MpiRequest copy =
        MpiRequest.start(
            "MPI_Comm_idup", abi, (r, arrays) -> Mpi.MPI_Comm_idup(abi.commWorld(), scratch, r));
    if (!MpiRuntime.await(copy, deadline.remaining())) {
      throw new RendezvousException(
          "rank "
              + context.rank()
              + " waited "
              + deadline
              + " for all ranks to make a communicator of "
              + runtime.version());
    }
    MpiFabric made = new MpiFabric(runtime, scratch);
    MpiCalls.check(
        "MPI_Comm_set_errhandler", Mpi.MPI_Comm_set_errhandler(made.comm, abi.errorsReturn()));
    runtime.worldOpened();
    return made;
  }

  /** Those that do not come are named, which MPI cannot do. */
  private static void awaitAll(RankContext context, Deadline deadline) {
    Store store = context.store();
    store.set("weft/mpi/" + context.rank(), "".getBytes(UTF_8));
    List<Integer> missing = new ArrayList<>();
    StoreTimeoutException last = null;
    for (int r = 0; r < context.worldSize(); r++) {
      try {
        store.waitFor(List.of("weft/mpi/" + r), deadline.remaining());
      } catch (StoreTimeoutException e) {
        missing.add(r);
        last = e;
      }
    }
    if (last != null) {
      throw new RendezvousException(
          "rank "
              + context.rank()
              + " waited "
              + deadline
              + " for "
              + (missing.size() == 1 ? "rank " + missing.get(0) : "ranks " + missing)
              + " to come to the world of "
              + context.worldSize(),
          last);
    }
  }

  @Override
  public String describe() {
    return runtime.version();
  }

  @Override
  public int chunk() {
    return CHUNK;
  }

  @Override
  public Transfer send(int globalRank, long address, int bytes) {
    return MpiRequest.start(
        "MPI_Isend",
        abi,
        (r, arrays) -> Mpi.MPI_Isend(address, bytes, abi.bytes(), globalRank, TAG, comm, r));
  }

  @Override
  public int receive(ByteBuffer into) {
    long flag = scratch + 8;
    long status = scratch + 16;
    MpiCalls.check("MPI_Iprobe", Mpi.MPI_Iprobe(abi.anySource(), TAG, comm, flag, status));
    if (Memory.getInt(flag) == 0) {
      return -1;
    }
    int source = Memory.getInt(status + abi.sourceOffset());
    int[] count = {0};
    MpiCalls.check("MPI_Get_count", Mpi.MPI_Get_count(status, abi.bytes(), count));
    MpiCalls.check(
        "MPI_Recv",
        Mpi.MPI_Recv(
            Memory.addressOf(into), count[0], abi.bytes(), source, TAG, comm, abi.statusIgnore()));
    into.clear().limit(count[0]);
    return source;
  }

  @Override
  public FabricGroup group(String name, List<Integer> ranks) {
    int[] members = ranks.stream().mapToInt(r -> r).toArray();
    long handles = HostMemory.allocate(32);
    try {
      MpiCalls.check("MPI_Comm_group", Mpi.MPI_Comm_group(comm, handles));
      MpiCalls.check(
          "MPI_Group_incl",
          Mpi.MPI_Group_incl(abi.handle(handles), members.length, members, handles + 8));
      int tag = Math.floorMod(name.hashCode(), TAGS);
      MpiCalls.check(
          "MPI_Comm_create_group",
          Mpi.MPI_Comm_create_group(comm, abi.handle(handles + 8), tag, handles + 16));
      long made = abi.handle(handles + 16);
      MpiCalls.check("MPI_Group_free", Mpi.MPI_Group_free(handles + 8));
      MpiCalls.check("MPI_Group_free", Mpi.MPI_Group_free(handles));
      MpiCalls.check(
          "MPI_Comm_set_errhandler", Mpi.MPI_Comm_set_errhandler(made, abi.errorsReturn()));
      return new MpiGroup(abi, made, members.length, ranks.indexOf(runtime.rank()));
    } finally {
      HostMemory.free(handles, 32);
    }
  }

  /** The communicator stays: freeing it needs all ranks, and some may be gone. */
  @Override
  public void close() {
    HostMemory.free(scratch, 16 + MpiAbi.STATUS_BYTES);
    runtime.worldClosed();
  }
}
