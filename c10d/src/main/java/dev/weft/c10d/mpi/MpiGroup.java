package dev.weft.c10d.mpi;

import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.host.Fabric;
import dev.weft.tensor.DType;
import dev.weft.tensor.memory.HostMemory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The collectives of one communicator: MPI's nonblocking ones. */
final class MpiGroup implements Fabric.FabricGroup {
  private static final Logger LOG = LoggerFactory.getLogger(MpiGroup.class);

  private final MpiAbi abi;
  private final long comm;
  private final int size;
  private final int rank;
  private volatile Fabric.Transfer last = () -> true;

  MpiGroup(MpiAbi abi, long comm, int size, int rank) {
    this.abi = abi;
    this.comm = comm;
    this.size = size;
    this.rank = rank;
  }

  private Fabric.Transfer start(String function, MpiRequest.Start start, int[]... arrays) {
    MpiRequest made = MpiRequest.start(function, abi, start, arrays);
    last = made;
    return made;
  }

  @Override
  public Fabric.Transfer allReduce(DType dtype, ReduceOp op, long address, long count) {
    int n = MpiCalls.count("all_reduce", count);
    long handle = MpiOps.of(abi, op.kind(), dtype);
    return start(
        "MPI_Iallreduce",
        (r, a) -> Mpi.MPI_Iallreduce(abi.inPlace(), address, n, abi.type(dtype), handle, comm, r));
  }

  @Override
  public Fabric.Transfer reduce(DType dtype, ReduceOp op, long address, long count, int root) {
    int n = MpiCalls.count("reduce", count);
    long handle = MpiOps.of(abi, op.kind(), dtype);
    long in = rank == root ? abi.inPlace() : address;
    long out = rank == root ? address : 0;
    return start(
        "MPI_Ireduce",
        (r, a) -> Mpi.MPI_Ireduce(in, out, n, abi.type(dtype), handle, root, comm, r));
  }

  @Override
  public Fabric.Transfer broadcast(DType dtype, long address, long count, int root) {
    int n = MpiCalls.count("broadcast", count);
    return start(
        "MPI_Ibcast", (r, a) -> Mpi.MPI_Ibcast(address, n, abi.type(dtype), root, comm, r));
  }

  @Override
  public Fabric.Transfer allGather(DType dtype, long input, long output, long[] counts) {
    int[] parts = counts("all_gather", counts);
    long type = abi.type(dtype);
    return start(
        "MPI_Iallgatherv",
        (r, a) ->
            Mpi.MPI_Iallgatherv(input, parts[rank], type, output, a, a + 4L * size, type, comm, r),
        parts,
        places(parts));
  }

  @Override
  public Fabric.Transfer reduceScatter(
      DType dtype, ReduceOp op, long input, long[] counts, long output) {
    int[] parts = counts("reduce_scatter", counts);
    long handle = MpiOps.of(abi, op.kind(), dtype);
    return start(
        "MPI_Ireduce_scatter",
        (r, a) -> Mpi.MPI_Ireduce_scatter(input, output, a, abi.type(dtype), handle, comm, r),
        parts);
  }

  @Override
  public Fabric.Transfer allToAll(
      DType dtype, long input, long[] inputCounts, long output, long[] outputCounts) {
    int[] sent = counts("all_to_all", inputCounts);
    int[] received = counts("all_to_all", outputCounts);
    long type = abi.type(dtype);
    long step = 4L * size;
    return start(
        "MPI_Ialltoallv",
        (r, a) ->
            Mpi.MPI_Ialltoallv(
                input, a, a + step, type, output, a + 2 * step, a + 3 * step, type, comm, r),
        sent,
        places(sent),
        received,
        places(received));
  }

  @Override
  public Fabric.Transfer gather(
      DType dtype, long input, long count, long output, long[] counts, int root) {
    int n = MpiCalls.count("gather", count);
    int[] parts = rank == root ? counts("gather", counts) : new int[size];
    long type = abi.type(dtype);
    return start(
        "MPI_Igatherv",
        (r, a) -> Mpi.MPI_Igatherv(input, n, type, output, a, a + 4L * size, type, root, comm, r),
        parts,
        places(parts));
  }

  @Override
  public Fabric.Transfer scatter(
      DType dtype, long input, long[] counts, long output, long count, int root) {
    int n = MpiCalls.count("scatter", count);
    int[] parts = rank == root ? counts("scatter", counts) : new int[size];
    long type = abi.type(dtype);
    return start(
        "MPI_Iscatterv",
        (r, a) -> Mpi.MPI_Iscatterv(input, a, a + 4L * size, type, output, n, type, root, comm, r),
        parts,
        places(parts));
  }

  @Override
  public void close() {
    if (!last.isDone()) {
      LOG.debug("a communicator is kept: its last collective was given up");
      return;
    }
    long handle = HostMemory.allocate(8);
    abi.putHandle(handle, comm);
    int result = Mpi.MPI_Comm_free(handle);
    HostMemory.free(handle, 8);
    if (result != 0) {
      LOG.warn("MPI_Comm_free failed with error {}", result);
    }
  }

  private static int[] counts(String what, long[] counts) {
    int[] out = new int[counts.length];
    long total = 0;
    for (int i = 0; i < counts.length; i++) {
      total += counts[i];
      out[i] = MpiCalls.count(what, counts[i]);
    }
    int unused = MpiCalls.count(what, total); // places are counted in elements, too
    return out;
  }

  private static int[] places(int[] counts) {
    int[] out = new int[counts.length];
    for (int i = 1; i < counts.length; i++) {
      out[i] = out[i - 1] + counts[i - 1];
    }
    return out;
  }
}
