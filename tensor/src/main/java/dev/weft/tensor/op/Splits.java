package dev.weft.tensor.op;

import dev.weft.tensor.Tensor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Tensors taken apart along a dimension, as views. Any thread. */
public final class Splits {
  private Splits() {}

  private static final Op WHOLE_DIM =
      Op.view("whole_dim", (x, a) -> x.withLayout(x.shape(), x.strides(), x.offset()))
          .gradient(Op.Saves.NOTHING, Grads.unary((ctx, g) -> g));

  /**
   * The tensor itself, or, where it is distributed, with a dimension whole on every rank: pieces
   * along it are then taken without communication.
   */
  private static Tensor wholeAlong(Tensor x, int dim, boolean strict) {
    return x.kind() == null ? x : Dispatcher.call(WHOLE_DIM, Attrs.of(dim, strict), x);
  }

  /** Pieces of a size along a dimension; the last one may be shorter. */
  public static List<Tensor> split(Tensor x, long size, int dim) {
    if (size < 1) {
      throw Check.bad("split", "size " + size + "; expected at least 1");
    }
    int d = Check.dim("split", dim, x.ndim());
    long total = x.size(d);
    Tensor whole = wholeAlong(x, d, false);
    List<Tensor> parts = new ArrayList<>();
    for (long at = 0; at < total || at == 0; at += size) {
      parts.add(Views.narrow(whole, d, at, Math.min(size, total - at)));
    }
    return parts;
  }

  /** Pieces of given sizes, which add up to the dimension's. */
  public static List<Tensor> split(Tensor x, long[] sizes, int dim) {
    int d = Check.dim("split", dim, x.ndim());
    if (Arrays.stream(sizes).sum() != x.size(d)) {
      throw Check.bad(
          "split",
          "sizes " + Arrays.toString(sizes) + " do not add up to the dimension's " + x.size(d));
    }
    Tensor whole = wholeAlong(x, d, false);
    List<Tensor> parts = new ArrayList<>();
    long at = 0;
    for (long size : sizes) {
      parts.add(Views.narrow(whole, d, at, size));
      at += size;
    }
    return parts;
  }

  /** At most {@code chunks} pieces of ceil(size / chunks). */
  public static List<Tensor> chunk(Tensor x, int chunks, int dim) {
    if (chunks < 1) {
      throw Check.bad("chunk", "chunks " + chunks + "; expected at least 1");
    }
    long size = x.size(Check.dim("chunk", dim, x.ndim()));
    return split(x, Math.max(1, (size + chunks - 1) / chunks), dim);
  }

  /** All positions of a dimension, one after the other. */
  public static List<Tensor> unbind(Tensor x, int dim) {
    int d = Check.dim("unbind", dim, x.ndim());
    Tensor whole = wholeAlong(x, d, true);
    List<Tensor> parts = new ArrayList<>();
    for (long i = 0; i < x.size(d); i++) {
      parts.add(Views.select(whole, d, i));
    }
    return parts;
  }
}
