package dev.weft.c10d.mpi;

import com.sun.jna.Callback;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;

/**
 * The functions of MPI that are used, bound to one library for good. Handles are passed as 64 bits
 * by both kinds of library: those whose handles are pointers, and those whose are 32-bit integers,
 * which look at the lower half. Addresses are passed as numbers.
 */
@SuppressWarnings("checkstyle:MethodName")
final class Mpi {
  private Mpi() {}

  /** Binds all functions; throws an {@link UnsatisfiedLinkError} if the library lacks one. */
  static void bind(NativeLibrary library) {
    Native.register(Mpi.class, library);
  }

  /** A reduction of the program's own. */
  interface UserFunction extends Callback {
    /** Combines {@code length} elements of the first into the second. */
    void invoke(Pointer input, Pointer inOut, Pointer length, Pointer datatype);
  }

  static native int MPI_Init_thread(long argc, long argv, int required, int[] provided);

  static native int MPI_Initialized(int[] flag);

  static native int MPI_Finalized(int[] flag);

  static native int MPI_Finalize();

  static native int MPI_Get_library_version(byte[] text, int[] length);

  static native int MPI_Error_string(int code, byte[] text, int[] length);

  static native int MPI_Comm_rank(long comm, int[] rank);

  static native int MPI_Comm_size(long comm, int[] size);

  static native int MPI_Comm_set_errhandler(long comm, long handler);

  static native int MPI_Comm_idup(long comm, long made, long request);

  static native int MPI_Comm_group(long comm, long group);

  static native int MPI_Group_incl(long group, int n, int[] ranks, long made);

  static native int MPI_Group_free(long group);

  static native int MPI_Comm_create_group(long comm, long group, int tag, long made);

  static native int MPI_Comm_free(long comm);

  static native int MPI_Op_create(UserFunction function, int commutes, long op);

  static native int MPI_Test(long request, long flag, long status);

  static native int MPI_Isend(
      long buffer, int count, long type, int destination, int tag, long comm, long request);

  static native int MPI_Iprobe(int source, int tag, long comm, long flag, long status);

  static native int MPI_Recv(
      long buffer, int count, long type, int source, int tag, long comm, long status);

  static native int MPI_Get_count(long status, long type, int[] count);

  static native int MPI_Ibcast(
      long buffer, int count, long type, int root, long comm, long request);

  static native int MPI_Iallreduce(
      long in, long out, int count, long type, long op, long comm, long request);

  static native int MPI_Ireduce(
      long in, long out, int count, long type, long op, int root, long comm, long request);

  static native int MPI_Iallgatherv(
      long in,
      int count,
      long type,
      long out,
      long counts,
      long places,
      long outType,
      long comm,
      long request);

  static native int MPI_Ireduce_scatter(
      long in, long out, long counts, long type, long op, long comm, long request);

  static native int MPI_Ialltoallv(
      long in,
      long counts,
      long places,
      long type,
      long out,
      long outCounts,
      long outPlaces,
      long outType,
      long comm,
      long request);

  static native int MPI_Igatherv(
      long in,
      int count,
      long type,
      long out,
      long counts,
      long places,
      long outType,
      int root,
      long comm,
      long request);

  static native int MPI_Iscatterv(
      long in,
      long counts,
      long places,
      long type,
      long out,
      int count,
      long outType,
      int root,
      long comm,
      long request);
}
