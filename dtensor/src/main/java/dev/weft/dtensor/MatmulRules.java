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
      rules.put(op, MatmulRules::matmul);
    }
    rules.put("linear", MatmulRules::linear);
    rules.put("addmm", MatmulRules::addmm);
    rules.put(
        "outer",
        call -> Einsum.rows(List.of(new int[] {0}, new int[] {1}), List.of(), new int[] {0, 1}));
    rules.put(
        "dot", call -> Einsum.rows(List.of(new int[] {0}, new int[] {0}), List.of(), new int[0]));
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

  /** input, then the two factors. */
  private static List<Sharding.Row> addmm(Sharding.Call call) {
    long[] out = call.outputs()[0].shape();
    long[] bias = call.shape(0);
    int[] added = new int[bias.length];
    for (int d = 0; d < added.length; d++) {
      int at = d + 2 - added.length;
      added[d] = bias[d] == 1 && out[at] != 1 ? Einsum.NONE : at == 0 ? 0 : 2;
    }
    List<Sharding.Row> rows = new ArrayList<>();
    for (Sharding.Row r :
        Einsum.rows(
            List.of(new int[] {0, 1}, new int[] {1, 2}), List.of(added), new int[] {0, 2})) {
      List<Placement> in = r.inputs();
      rows.add(new Sharding.Row(r.outputs(), List.of(in.get(2), in.get(0), in.get(1))));
    }
    return rows;
  }
}
