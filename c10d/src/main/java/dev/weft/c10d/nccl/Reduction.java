package dev.weft.c10d.nccl;

import static org.bytedeco.cuda.global.nccl.ncclRedOpCreatePreMulSum;
import static org.bytedeco.cuda.global.nccl.ncclRedOpDestroy;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.cpu.HalfFloats;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.IntPointer;

/** How elements are reduced, as NCCL's number. Immutable; the numbers of sums are shared. */
final class Reduction {
  private static final Reduction[] PLAIN = new Reduction[nccl.ncclNumOps];

  static {
    for (int i = 0; i < PLAIN.length; i++) {
      PLAIN[i] = new Reduction(i, false, 1, DType.FLOAT32);
    }
  }

  private final int code;
  private final boolean scaled;
  private final double factor;
  private final DType dtype;

  /** A call of NCCL with the number. */
  interface Call {
    int run(int code);
  }

  private Reduction(int code, boolean scaled, double factor, DType dtype) {
    this.code = code;
    this.scaled = scaled;
    this.factor = factor;
    this.dtype = dtype;
  }

  /**
   * The reduction of an operation.
   *
   * @throws IllegalArgumentException if NCCL does not know it
   */
  static Reduction of(String operation, ReduceOp op, DType dtype) {
    return op.kind() == ReduceOp.Kind.PREMUL_SUM
        ? new Reduction(0, true, op.factor(), dtype)
        : PLAIN[NcclTypes.reduction(operation, op, dtype)];
  }

  /** Calls NCCL with the number; one that belongs to the communicator lives as long as the call. */
  int with(NcclCommunicator communicator, Call call) {
    if (!scaled) {
      return call.run(code);
    }
    try (IntPointer made = new IntPointer(1);
        BytePointer scalar = scalar()) {
      int status =
          ncclRedOpCreatePreMulSum(
              made,
              scalar,
              NcclTypes.reduced("premul_sum", dtype),
              nccl.ncclScalarHostImmediate,
              communicator.handle());
      if (status != nccl.ncclSuccess) {
        return status;
      }
      int result = call.run(made.get());
      int destroyed = ncclRedOpDestroy(made.get(), communicator.handle());
      return result != nccl.ncclSuccess ? result : destroyed;
    }
  }

  private BytePointer scalar() {
    BytePointer bytes = new BytePointer(8);
    switch (dtype) {
      case FLOAT64 -> bytes.putDouble(factor);
      case FLOAT32 -> bytes.putFloat((float) factor);
      case FLOAT16 -> bytes.putShort(HalfFloats.toFloat16((float) factor));
      case BFLOAT16 -> bytes.putShort(HalfFloats.toBfloat16((float) factor));
      default ->
          throw new IllegalArgumentException(
              "a pre-multiplied sum does not work on dtype " + dtype);
    }
    return bytes;
  }
}
