package dev.weft.c10d.host;

import dev.weft.c10d.ReduceOp;
import dev.weft.tensor.DType;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What is to be moved in a collective, as one rank sees it: what each rank gives to each, and what
 * becomes of what this one takes.
 *
 * @param call what the rank calls
 * @param dtype of all elements
 * @param same whether a rank gives the same to all who take
 * @param giver the only rank that gives, or -1 for all
 * @param taker the only rank that takes, or -1 for all (but a single giver)
 * @param give what this rank gives to each rank, or the one piece that it gives to all; null where
 *     it gives nothing
 * @param into where what comes from each rank goes, or null where it is reduced or this rank does
 *     not take
 * @param fold how it is reduced, or null
 */
record SharedMove(
    Signature call,
    DType dtype,
    boolean same,
    int giver,
    int taker,
    @Nullable List<Piece> give,
    @Nullable List<Piece> into,
    @Nullable Fold fold) {

  /**
   * A reduction of what all ranks give.
   *
   * @param own what this rank adds
   * @param out where the result goes, which may be {@code own}
   */
  record Fold(ReduceOp op, Piece own, Piece out) {}

  boolean gives(int rank) {
    return giver < 0 || giver == rank;
  }

  boolean takes(int rank) {
    return taker < 0 ? giver != rank : taker == rank;
  }
}
