package dev.weft.c10d.mpi;

import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.memory.Memory;

/**
 * What a kind of library calls its constants, and how it lays things out. Immutable.
 *
 * <p>Open MPI's handles are the addresses of objects that it exports. MPICH's are numbers, which it
 * shares with Intel MPI, MVAPICH and others since the ABI initiative of 2013.
 */
abstract class MpiAbi {
  static final int THREAD_MULTIPLE = 3;

  /** Room for a handle or a status of any library. */
  static final int STATUS_BYTES = 64;

  static MpiAbi of(NativeLibrary library) {
    return exports(library, "ompi_mpi_comm_world") ? new OpenMpi(library) : new Mpich();
  }

  private static boolean exports(NativeLibrary library, String name) {
    try {
      return library.getGlobalVariableAddress(name) != null;
    } catch (UnsatisfiedLinkError e) {
      return false; // a library of the other kind
    }
  }

  abstract long commWorld();

  abstract long errorsReturn();

  abstract long inPlace();

  abstract long statusIgnore();

  abstract int anySource();

  /** Where a status keeps its source. */
  abstract int sourceOffset();

  /** Reads a handle that the library wrote. */
  abstract long handle(long address);

  abstract void putHandle(long address, long handle);

  abstract long bytes();

  abstract long type(DType dtype);

  /** A reduction of the library for integers, and for sums and products. */
  abstract long op(ReduceOp.Kind kind, DType dtype);

  /** Which of the library's operations; bool elements are truth values. */
  static String opName(ReduceOp.Kind kind, DType dtype) {
    boolean logical = dtype == DType.BOOL;
    return switch (kind) {
      case SUM -> logical ? "lor" : "sum";
      case PRODUCT -> logical ? "land" : "prod";
      case MIN -> logical ? "land" : "min";
      case MAX -> logical ? "lor" : "max";
      case BAND -> logical ? "land" : "band";
      case BOR -> logical ? "lor" : "bor";
      case BXOR -> logical ? "lxor" : "bxor";
      case AVG, PREMUL_SUM -> throw new IllegalArgumentException(kind + " is no operation of MPI");
    };
  }

  private static final class OpenMpi extends MpiAbi {
    private final NativeLibrary library;

    OpenMpi(NativeLibrary library) {
      this.library = library;
    }

    private long symbol(String name) {
      return Pointer.nativeValue(library.getGlobalVariableAddress(name));
    }

    @Override
    long commWorld() {
      return symbol("ompi_mpi_comm_world");
    }

    @Override
    long errorsReturn() {
      return symbol("ompi_mpi_errors_return");
    }

    @Override
    long inPlace() {
      return 1;
    }

    @Override
    long statusIgnore() {
      return 0;
    }

    @Override
    int anySource() {
      return -1;
    }

    @Override
    int sourceOffset() {
      return 0;
    }

    @Override
    long handle(long address) {
      return Memory.getLong(address);
    }

    @Override
    void putHandle(long address, long handle) {
      Memory.putLong(address, handle);
    }

    @Override
    long bytes() {
      return symbol("ompi_mpi_byte");
    }

    @Override
    long type(DType dtype) {
      return switch (dtype) {
        case FLOAT64 -> symbol("ompi_mpi_double");
        case FLOAT32 -> symbol("ompi_mpi_float");
        case INT64 -> symbol("ompi_mpi_int64_t");
        case INT32 -> symbol("ompi_mpi_int32_t");
        // 16-bit floating-point elements are only moved.
        case INT16, FLOAT16, BFLOAT16 -> symbol("ompi_mpi_int16_t");
        case INT8 -> symbol("ompi_mpi_int8_t");
        case UINT8, BOOL -> symbol("ompi_mpi_uint8_t");
      };
    }

    @Override
    long op(ReduceOp.Kind kind, DType dtype) {
      return symbol("ompi_mpi_op_" + opName(kind, dtype));
    }
  }

  private static final class Mpich extends MpiAbi {
    @Override
    long commWorld() {
      return 0x44000000L;
    }

    @Override
    long errorsReturn() {
      return 0x54000001L;
    }

    @Override
    long inPlace() {
      return -1;
    }

    @Override
    long statusIgnore() {
      return 1;
    }

    @Override
    int anySource() {
      return -2;
    }

    @Override
    int sourceOffset() {
      return 8;
    }

    @Override
    long handle(long address) {
      return Memory.getInt(address);
    }

    @Override
    void putHandle(long address, long handle) {
      Memory.putInt(address, (int) handle);
    }

    @Override
    long bytes() {
      return 0x4c00010dL;
    }

    @Override
    long type(DType dtype) {
      return switch (dtype) {
        case FLOAT64 -> 0x4c00080bL;
        case FLOAT32 -> 0x4c00040aL;
        case INT64 -> 0x4c00083aL;
        case INT32 -> 0x4c000439L;
        case INT16, FLOAT16, BFLOAT16 -> 0x4c000238L;
        case INT8 -> 0x4c000137L;
        case UINT8, BOOL -> 0x4c00013bL;
      };
    }

    @Override
    long op(ReduceOp.Kind kind, DType dtype) {
      int number =
          switch (opName(kind, dtype)) {
            case "max" -> 1;
            case "min" -> 2;
            case "sum" -> 3;
            case "prod" -> 4;
            case "land" -> 5;
            case "band" -> 6;
            case "lor" -> 7;
            case "bor" -> 8;
            case "lxor" -> 9;
            default -> 10;
          };
      return 0x58000000L + number;
    }
  }
}
