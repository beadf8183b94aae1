package dev.weft.dtensor;

import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Compare;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Unary;
import dev.weft.tensor.op.Views;
import java.util.ArrayList;
import java.util.List;

/**
 * Look-up in a table that may be cut by rows: each rank looks up the rows that it holds and
 * contributes zeros for the others, so that a sum is outstanding.
 */
final class EmbeddingRules {
  private EmbeddingRules() {}

  /** Weight [rows, width], indices of any shape. */
  static final class Forward implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      int n = call.ndim(1);
      List<Sharding.Row> rows = new ArrayList<>();
      for (int d = 0; d < n; d++) {
        rows.add(Sharding.Row.of(new Shard(d), Replicate.INSTANCE, new Shard(d)));
      }
      rows.add(Sharding.Row.of(new Shard(n), new Shard(1), Replicate.INSTANCE));
      // The sum that this leaves has a price, which is paid later.
      rows.add(
          Sharding.Row.of(Partial.SUM, new Shard(0), Replicate.INSTANCE)
              .communicating(0, 2 * ReductionRules.resultBytes(call)));
      return rows;
    }

    @Override
    public Sharding.LocalCall localCall(Sharding.Call call) {
      return Forward::run;
    }

    private static Tensor[] run(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs, Tensor[] local) {
      DTensorSpec weight = inputs.get(0);
      if (!isCutByRows(weight)) {
        return Dispatcher.callAll(call.op(), call.attrs(), local);
      }
      long[] shape = outputs.get(0).localShape();
      if (local[0].size(0) == 0) {
        StridedTensor zeros = Creation.zeros(local[0].dtype(), shape);
        return new Tensor[] {zeros};
      }
      Rows rows = Rows.of(local[1], weight.globalOffset()[0], local[0].size(0));
      Tensor found = Dispatcher.call(call.op(), call.attrs(), local[0], rows.clamped);
      return new Tensor[] {Compare.maskedFill(found, Views.unsqueeze(rows.elsewhere, -1), 0)};
    }
  }

  /** Gradient [..., width], indices [...]; attributes: rows of the table, padding index. */
  static final class Backward implements Sharding.Rule {
    @Override
    public List<Sharding.Row> rows(Sharding.Call call) {
      int n = call.ndim(1);
      List<Sharding.Row> rows = new ArrayList<>();
      for (int d = 0; d < n; d++) {
        rows.add(Sharding.Row.of(Partial.SUM, new Shard(d), new Shard(d)));
      }
      rows.add(Sharding.Row.of(new Shard(1), new Shard(n), Replicate.INSTANCE));
      rows.add(Sharding.Row.of(new Shard(0), Replicate.INSTANCE, Replicate.INSTANCE));
      for (Placement p : PointwiseRules.linear()) {
        rows.add(Sharding.Row.of(p, p, Replicate.INSTANCE));
      }
      return rows;
    }

    @Override
    public Sharding.LocalCall localCall(Sharding.Call call) {
      return Backward::run;
    }

    private static Tensor[] run(
        Sharding.Call call, List<DTensorSpec> inputs, List<DTensorSpec> outputs, Tensor[] local) {
      DTensorSpec table = outputs.get(0);
      if (!isCutByRows(table)) {
        return Dispatcher.callAll(call.op(), call.attrs(), local);
      }
      long[] shape = table.localShape();
      if (shape[0] == 0) {
        return new Tensor[] {Creation.zeros(local[0].dtype(), shape)};
      }
      long offset = table.globalOffset()[0];
      Rows rows = Rows.of(local[1], offset, shape[0]);
      Tensor kept = Compare.maskedFill(local[0], Views.unsqueeze(rows.elsewhere, -1), 0);
      long padding = call.attrs().longAt(1) - offset;
      boolean here = call.attrs().longAt(1) >= 0 && padding >= 0 && padding < shape[0];
      Attrs attrs = Attrs.of(shape[0], here ? padding : -1L);
      return new Tensor[] {Dispatcher.call(call.op(), attrs, kept, rows.clamped)};
    }
  }

  private static boolean isCutByRows(DTensorSpec table) {
    return table.placements().stream().anyMatch(p -> p.isShard(0));
  }

  /** Indices into the rows that this rank holds, and which of them are not among those. */
  private record Rows(Tensor clamped, Tensor elsewhere) {
    static Rows of(Tensor indices, long offset, long count) {
      Tensor own = Pointwise.sub(indices, offset);
      Tensor elsewhere = Compare.logicalOr(Compare.lt(own, 0), Compare.ge(own, count));
      return new Rows(Unary.clamp(own, 0, count - 1), elsewhere);
    }
  }
}
