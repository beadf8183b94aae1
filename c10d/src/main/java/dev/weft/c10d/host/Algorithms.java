package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import dev.weft.tensor.StridedTensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * How collectives are carried out. Called by one thread at a time for a group, in the order of the
 * group's calls; memory that is staged is written back with {@link Staging#finish}.
 */
interface Algorithms {
  /** In a few words; empty where nothing is chosen yet. */
  String describe();

  void allReduce(Round round, Staging staging, StridedTensor t, ReduceOp op);

  void reduce(Round round, Staging staging, StridedTensor t, int root, ReduceOp op);

  void broadcast(Round round, Staging staging, StridedTensor t, int root);

  /** Every rank's input to every rank; outputs are in the order of ranks. */
  void allGather(
      Round round, Staging staging, String name, List<Piece> outputs, Piece input, DType dtype);

  void reduceScatter(
      Round round,
      Staging staging,
      String name,
      Piece output,
      List<Piece> inputs,
      DType dtype,
      ReduceOp op);

  void allToAll(
      Round round,
      Staging staging,
      String name,
      List<Piece> outputs,
      List<Piece> inputs,
      DType dtype);

  /** Outputs are null but at the root. */
  void gather(
      Round round,
      Staging staging,
      Piece input,
      @Nullable List<Piece> outputs,
      int root,
      DType dtype);

  /** Inputs are null but at the root. */
  void scatter(
      Round round,
      Staging staging,
      Piece output,
      @Nullable List<Piece> inputs,
      int root,
      DType dtype);

  void barrier(Round round);

  /**
   * The group is destroyed.
   *
   * @param idle false where a thread may still be in one of these methods, which has been given up
   */
  void close(boolean idle);
}
