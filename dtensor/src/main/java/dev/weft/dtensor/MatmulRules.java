package dev.weft.dtensor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Matrix products. */
final class MatmulRules {
  private MatmulRules() {}

  static void addTo(Map<String, Sharding.Rule> rules) {
    for (String op : List.of("matmul", "mm", "bmm")) {
      rules.put(op, FollowRules.full(MatmulRules::matmul));
    }
    rules.put("linear", FollowRules.full(MatmulRules::linear));
    rules.put("addmm", FollowRules.full(call -> added(call, 0)));
    rules.put("baddbmm", FollowRules.full(call -> added(call, 1)));
    rules.put(
        "dot",
        FollowRules.full(
            call -> Einsum.rows(List.of(new int[] {0}, new int[] {0}), List.of(), new int[0])));
  }

  /** [..., m, k] by [..., k, n], with PyTorch's shorter forms. */
  private static List<Sharding.Row> matmul(Sharding.Call call) {
    long[] a = call.shape(0);
    long[] b = call.shape(1);
    int batch = Math.max(Math.max(a.length, b.length) - 2, 0);
    int m = batch;
    int k = batch + 1;
    int n = batch + 2;
    int[] la = a.length == 1 ? new int[] {k} : labels(a, batch, m, k);
    int[] lb = b.length == 1 ? new int[] {k} : labels(b, batch, k, n);
    List<Integer> out = new ArrayList<>();
    for (int i = 0; i < batch; i++) {
      out.add(i);
    }
    if (a.length > 1) {
      out.add(m);
    }
    if (b.length > 1) {
      out.add(n);
    }
    return Einsum.rows(
        List.of(la, lb), List.of(), out.stream().mapToInt(Integer::intValue).toArray());
  }

  private static int[] labels(long[] shape, int batch, int row, int column) {
    int[] out = new int[shape.length];
    int lead = shape.length - 2;
    for (int i = 0; i < lead; i++) {
      out[i] = shape[i] == 1 ? Einsum.NONE : batch - lead + i;
    }
    out[lead] = row;
    out[lead + 1] = column;
    return out;
  }

  /** x[..., k], weight[n, k], bias[n]. */
  private static List<Sharding.Row> linear(Sharding.Call call) {
    int lead = call.ndim(0) - 1;
    int[] x = new int[lead + 1];
    Arrays.setAll(x, i -> i);
    int k = lead;
    int n = lead + 1;
    int[] out = x.clone();
    out[lead] = n;
    List<int[]> bias = call.inputs().size() > 2 ? List.of(new int[] {n}) : List.of();
    return Einsum.rows(List.of(x, new int[] {n, k}), bias, out);
  }

  /** input, then the two factors, which may have batch dimensions in front. */
  private static List<Sharding.Row> added(Sharding.Call call, int batch) {
    long[] out = call.outputs()[0].shape();
    long[] bias = call.shape(0);
    int[] left = new int[batch + 2];
    int[] right = new int[batch + 2];
    int[] result = new int[batch + 2];
    for (int i = 0; i < batch; i++) {
      left[i] = i;
      right[i] = i;
      result[i] = i;
    }
    left[batch] = batch;
    left[batch + 1] = batch + 1;
    right[batch] = batch + 1;
    right[batch + 1] = batch + 2;
    result[batch] = batch;
    result[batch + 1] = batch + 2;
    int[] added = new int[bias.length];
    for (int d = 0; d < added.length; d++) {
      int at = d + out.length - added.length;
      added[d] = bias[d] == 1 && out[at] != 1 ? Einsum.NONE : result[at];
    }
    List<Sharding.Row> rows = new ArrayList<>();
    for (Sharding.Row r : Einsum.rows(List.of(left, right), List.of(added), result)) {
      List<Placement> in = r.inputs();
      rows.add(new Sharding.Row(r.outputs(), List.of(in.get(2), in.get(0), in.get(1))));
    }
    return rows;
  }
}
