package dev.weft.c10d.mpi;

import com.sun.jna.Pointer;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.host.FabricBackends;
import dev.weft.tensor.DType;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.util.HashMap;
import java.util.Map;

/**
 * Reductions as MPI's operations. Its own minimum and maximum lose NaN in some orders, so those of
 * floating-point elements are Weft's. Thread-safe.
 */
final class MpiOps {
  private record Key(ReduceOp.Kind kind, DType dtype) {}

  /** The function is kept with its handle: MPI calls it as long as the process lives. */
  private record Own(Mpi.UserFunction function, long handle) {}

  private static final Map<Key, Own> OWN = new HashMap<>();

  private MpiOps() {}

  static long of(MpiAbi abi, ReduceOp.Kind kind, DType dtype) {
    boolean ordered = kind == ReduceOp.Kind.MIN || kind == ReduceOp.Kind.MAX;
    if (!ordered || !dtype.isFloatingPoint()) {
      return abi.op(kind, dtype);
    }
    synchronized (OWN) {
      return OWN.computeIfAbsent(new Key(kind, dtype), k -> make(abi, k)).handle();
    }
  }

  private static Own make(MpiAbi abi, Key key) {
    ReduceOp op = ReduceOp.of(key.kind().name());
    Mpi.UserFunction function =
        (input, inOut, length, datatype) ->
            FabricBackends.combine(
                key.dtype(),
                op,
                Pointer.nativeValue(input),
                Pointer.nativeValue(inOut),
                length.getInt(0));
    long handle = HostMemory.allocate(8);
    Memory.putLong(handle, 0);
    try {
      MpiCalls.check("MPI_Op_create", Mpi.MPI_Op_create(function, 1, handle));
      return new Own(function, abi.handle(handle));
    } finally {
      HostMemory.free(handle, 8);
    }
  }
}
