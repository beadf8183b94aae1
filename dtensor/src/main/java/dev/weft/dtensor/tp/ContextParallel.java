package dev.weft.dtensor.tp;

import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Placement;
import dev.weft.dtensor.Placements;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Joins;
import dev.weft.tensor.op.Views;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Attention over a sequence that is cut along a mesh dimension: keys and values go round the ring
 * of ranks while each computes with those that it has (ring attention; Liu et al.,
 * arXiv:2310.01889). Equal to attention on one rank, differentiable; no rank ever holds more than
 * its own keys and one other rank's. Called by the threads that act for the ranks, by all alike.
 */
public final class ContextParallel {
  private ContextParallel() {}

  /** Which positions of the sequence the ranks hold. */
  public enum Order {
    /** Consecutive ones, as a sharded tensor has them; late ranks have more to do when causal. */
    SEQUENTIAL,
    /**
     * Of 2n pieces, rank i holds pieces i and 2n - 1 - i, so that all have as much to do when
     * causal. The tensors are those of {@link #zigzag}.
     */
    ZIGZAG
  }

  /**
   * softmax(q k^T / sqrt(width)) v over [..., length, width].
   *
   * @param query cut along its dimension -2 on one mesh dimension, otherwise whole or cut along
   *     leading dimensions (batch, heads)
   * @param key placed as the query; of the same leading dimensions and width
   * @param value of the key's shape, placed as the query
   * @param causal whether a position sees only itself and those before it; query and key then have
   *     the same length
   * @return placed as the query
   */
  public static DTensor attention(
      DTensor query, DTensor key, DTensor value, boolean causal, Order order) {
    int mesh = check(query, key, value, causal);
    Ring ring = Ring.of(query.mesh(), mesh);
    List<List<RingAttention.Piece>> queries = pieces(query, ring.n(), order);
    List<List<RingAttention.Piece>> keys = pieces(key, ring.n(), order);
    Tensor out =
        Dispatcher.callAll(
            RingAttention.OP,
            Attrs.of(ring, queries, keys, causal),
            query.toLocal(),
            key.toLocal(),
            value.toLocal())[0];
    long[] shape = query.shape().clone();
    return DTensor.fromLocal(
        out,
        query.mesh(),
        query.placements(),
        DTensor.FromLocal.DEFAULT.withShape(
            shape, dev.weft.tensor.Shapes.contiguousStrides(shape)));
  }

  /**
   * The same on each rank's part of equally long parts, as plain tensors.
   *
   * @param mesh one dimension: the ranks that share the sequence
   */
  public static Tensor attention(
      Tensor query, Tensor key, Tensor value, DeviceMesh mesh, boolean causal, Order order) {
    Placement cut = Placements.shard(-2);
    return attention(
            DTensor.fromLocal(query, mesh, cut),
            DTensor.fromLocal(key, mesh, cut),
            DTensor.fromLocal(value, mesh, cut),
            causal,
            order)
        .toLocal();
  }

  private static int check(DTensor query, DTensor key, DTensor value, boolean causal) {
    int n = query.ndim();
    if (n < 2) {
      throw new IllegalArgumentException(
          "attention: query is " + query.describe() + "; expected [..., length, width]");
    }
    int found = -1;
    for (int m = 0; m < query.mesh().ndim(); m++) {
      Placement p = query.placements().get(m);
      boolean fits = p.isReplicate() || (p.isShard() && p.shardDim() < n - 1);
      if (!fits || (p.isShard(n - 2) && (found >= 0 || !p.equals(Placements.shard(n - 2))))) {
        throw new IllegalArgumentException(
            "attention: query is placed as "
                + query.placements()
                + "; expected S("
                + (n - 2)
                + ") on one mesh dimension, and R or a cut of leading dimensions on the others");
      }
      found = p.isShard(n - 2) ? m : found;
    }
    if (found < 0) {
      throw new IllegalArgumentException(
          "attention: query is placed as "
              + query.placements()
              + "; expected S("
              + (n - 2)
              + ") on one mesh dimension");
    }
    for (DTensor other : List.of(key, value)) {
      long[] expected = query.shape().clone();
      if (other.ndim() == n && !causal) {
        expected[n - 2] = key.shape()[n - 2];
      }
      if (!other.mesh().equals(query.mesh())
          || !other.placements().equals(query.placements())
          || !Arrays.equals(other.shape(), expected)
          || other.dtype() != query.dtype()) {
        throw new IllegalArgumentException(
            "attention: "
                + (other == key ? "key" : "value")
                + " is "
                + other.describe()
                + "; expected "
                + Arrays.toString(expected)
                + ", otherwise as query, which is "
                + query.describe());
      }
    }
    return found;
  }

  /** Where the parts of each rank lie in the sequence. */
  private static List<List<RingAttention.Piece>> pieces(DTensor t, int n, Order order) {
    long size = t.shape()[t.ndim() - 2];
    List<List<RingAttention.Piece>> out = new ArrayList<>();
    if (order == Order.ZIGZAG) {
      long piece = zigzagPiece(size, n);
      for (int i = 0; i < n; i++) {
        out.add(
            List.of(
                new RingAttention.Piece(i * piece, 0, piece),
                new RingAttention.Piece((2L * n - 1 - i) * piece, piece, piece)));
      }
      return out;
    }
    long chunk = (size + n - 1) / n;
    for (int i = 0; i < n; i++) {
      long start = Math.min(size, i * chunk);
      long length = Math.min(size, (i + 1) * chunk) - start;
      out.add(length == 0 ? List.of() : List.of(new RingAttention.Piece(start, 0, length)));
    }
    return out;
  }

  private static long zigzagPiece(long size, int n) {
    if (size % (2L * n) != 0) {
      throw new IllegalArgumentException(
          "zigzag: the sequence has "
              + size
              + " positions; expected a multiple of "
              + 2 * n
              + ", twice the number of ranks that share it");
    }
    return size / (2L * n);
  }

  /**
   * Brings a sequence into the order of {@link Order#ZIGZAG}, so that cutting it gives each of
   * {@code n} ranks its two pieces. Differentiable. Positions of a position encoding are brought
   * into that order in the same way.
   *
   * @param t plain, or whole along {@code dim}
   */
  public static Tensor zigzag(Tensor t, int dim, int n) {
    int d = dev.weft.tensor.Shapes.dim(dim, t.ndim());
    long piece = zigzagPiece(t.size(d), n);
    List<Tensor> parts = new ArrayList<>();
    for (int i = 0; i < n; i++) {
      parts.add(Views.narrow(t, d, i * piece, piece));
      parts.add(Views.narrow(t, d, (2L * n - 1 - i) * piece, piece));
    }
    return Joins.cat(parts, d);
  }

  /** The inverse of {@link #zigzag}. */
  public static Tensor unzigzag(Tensor t, int dim, int n) {
    int d = dev.weft.tensor.Shapes.dim(dim, t.ndim());
    long piece = zigzagPiece(t.size(d), n);
    Tensor[] parts = new Tensor[2 * n];
    for (int i = 0; i < n; i++) {
      parts[i] = Views.narrow(t, d, 2L * i * piece, piece);
      parts[2 * n - 1 - i] = Views.narrow(t, d, (2L * i + 1) * piece, piece);
    }
    return Joins.cat(List.of(parts), d);
  }
}
