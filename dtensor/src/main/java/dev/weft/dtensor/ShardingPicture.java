package dev.weft.dtensor;

import dev.weft.tensor.Shapes;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * Pictures of how a tensor lies over its ranks: a table of boxes, each with the ranks that hold it.
 * Of a tensor of more than two dimensions the first two that are cut are shown. Made without
 * communication, the same on every rank; stateless.
 */
public final class ShardingPicture {
  private static final int SCALE = 480;
  private static final String[] COLOURS = {
    "#4e79a7", "#f28e2b", "#76b7b2", "#59a14f", "#edc948", "#b07aa1", "#ff9da7", "#9c755f"
  };

  private final DTensorSpec spec;
  private final int rowDim;
  private final int columnDim;
  private final long[] rows;
  private final long[] columns;
  private final String[][] holders;
  private final TreeSet<Integer> empty = new TreeSet<>();

  private ShardingPicture(DTensorSpec spec) {
    this.spec = spec;
    int[] shown = shownDims(spec);
    this.rowDim = shown[0];
    this.columnDim = shown[1];
    this.rows = borders(rowDim);
    this.columns = borders(columnDim);
    this.holders = new String[Math.max(rows.length - 1, 0)][Math.max(columns.length - 1, 0)];
    fill();
  }

  /** With the characters of boxes, for a terminal. */
  public static String text(DTensorSpec spec) {
    return new ShardingPicture(spec).table();
  }

  /** As an SVG document; areas are as large as the parts. */
  public static String svg(DTensorSpec spec) {
    return new ShardingPicture(spec).drawing();
  }

  // -1 stands for a dimension that the tensor does not have.
  private static int[] shownDims(DTensorSpec spec) {
    int n = spec.shape().length;
    TreeSet<Integer> cut = new TreeSet<>();
    for (Placement p : spec.placements()) {
      if (p.isShard()) {
        cut.add(p.shardDim());
      }
    }
    for (int d = 0; d < n && cut.size() < 2; d++) {
      cut.add(d);
    }
    List<Integer> dims = new ArrayList<>(cut);
    // A vector lies on its side.
    return dims.size() == 1
        ? new int[] {-1, dims.get(0)}
        : dims.isEmpty() ? new int[] {-1, -1} : new int[] {dims.get(0), dims.get(1)};
  }

  private List<Cuts.Range> held(int dim, int[] coordinate) {
    return dim < 0
        ? List.of(new Cuts.Range(0, 1))
        : Layout.held(spec.shape()[dim], dim, spec.mesh().shape(), spec.placements(), coordinate);
  }

  private interface Visitor {
    void visit(int[] coordinate, int rank);
  }

  private void coordinates(Visitor visitor) {
    int[] shape = spec.mesh().shape();
    int[] ranks = spec.mesh().ranks();
    for (int i = 0; i < ranks.length; i++) {
      int[] at = new int[shape.length];
      int rest = i;
      for (int m = shape.length - 1; m >= 0; m--) {
        at[m] = rest % shape[m];
        rest /= shape[m];
      }
      visitor.visit(at, ranks[i]);
    }
  }

  private long[] borders(int dim) {
    TreeSet<Long> all = new TreeSet<>();
    coordinates(
        (at, rank) ->
            held(dim, at)
                .forEach(
                    r -> {
                      all.add(r.start());
                      all.add(r.start() + r.length());
                    }));
    return all.stream().mapToLong(Long::longValue).toArray();
  }

  private void fill() {
    List<List<TreeSet<Integer>>> cells = new ArrayList<>();
    for (String[] row : holders) {
      List<TreeSet<Integer>> list = new ArrayList<>();
      for (int c = 0; c < row.length; c++) {
        list.add(new TreeSet<>());
      }
      cells.add(list);
    }
    coordinates(
        (at, rank) -> {
          if (Shapes.numel(
                  Layout.localShape(spec.shape(), spec.mesh().shape(), spec.placements(), at))
              == 0) {
            empty.add(rank);
          }
          for (Cuts.Range r : held(rowDim, at)) {
            for (Cuts.Range c : held(columnDim, at)) {
              for (int i = 0; i < holders.length; i++) {
                for (int k = 0; k < holders[i].length; k++) {
                  if (inside(rows, i, r) && inside(columns, k, c)) {
                    cells.get(i).get(k).add(rank);
                  }
                }
              }
            }
          }
        });
    for (int i = 0; i < holders.length; i++) {
      for (int k = 0; k < holders[i].length; k++) {
        holders[i][k] = ranks(cells.get(i).get(k));
      }
    }
  }

  private static boolean inside(long[] borders, int i, Cuts.Range range) {
    return borders[i] >= range.start() && borders[i + 1] <= range.start() + range.length();
  }

  /** {@code 0-3,6}. */
  private static String ranks(Set<Integer> ranks) {
    StringBuilder out = new StringBuilder();
    Integer[] all = ranks.toArray(new Integer[0]);
    for (int i = 0; i < all.length; ) {
      int end = i;
      while (end + 1 < all.length && all[end + 1] == all[end] + 1) {
        end++;
      }
      out.append(out.length() == 0 ? "" : ",").append(all[i]);
      if (end > i) {
        out.append(end == i + 1 ? "," : "-").append(all[end]);
      }
      i = end + 1;
    }
    return out.toString();
  }

  private String caption() {
    String over =
        spec.shape().length > 2 ? ", dimensions " + rowDim + " (down) and " + columnDim : "";
    return spec + over;
  }

  private static String range(long[] borders, int i) {
    return borders[i] + ":" + borders[i + 1];
  }

  // ---- text ----

  private String table() {
    if (holders.length == 0 || holders[0].length == 0 || Shapes.numel(spec.shape()) == 0) {
      return caption() + "\n(empty)";
    }
    int width = 0;
    for (int k = 0; k < columns.length - 1; k++) {
      width = Math.max(width, columnDim < 0 ? 0 : range(columns, k).length());
      for (String[] row : holders) {
        width = Math.max(width, row[k].length() + 2);
      }
    }
    int margin = 0;
    for (int i = 0; i < rows.length - 1 && rowDim >= 0; i++) {
      margin = Math.max(margin, range(rows, i).length() + 1);
    }
    StringBuilder out = new StringBuilder(caption()).append('\n');
    if (columnDim >= 0) {
      StringBuilder head = new StringBuilder(" ".repeat(margin + 1));
      for (int k = 0; k < columns.length - 1; k++) {
        head.append(centred(range(columns, k), width)).append(' ');
      }
      out.append(head.toString().stripTrailing()).append('\n');
    }
    String blank = " ".repeat(margin);
    out.append(blank).append(line('┌', '┬', '┐', width)).append('\n');
    for (int i = 0; i < holders.length; i++) {
      String label = rowDim < 0 ? "" : range(rows, i) + " ";
      out.append(" ".repeat(margin - label.length())).append(label);
      for (String cell : holders[i]) {
        out.append('│').append(centred(cell, width));
      }
      out.append("│\n").append(blank);
      boolean last = i == holders.length - 1;
      out.append(last ? line('└', '┴', '┘', width) : line('├', '┼', '┤', width)).append('\n');
    }
    return out.append(empty.isEmpty() ? "" : "nothing on ranks " + ranks(empty))
        .toString()
        .stripTrailing();
  }

  private String line(char left, char middle, char right, int width) {
    String[] dashes = new String[columns.length - 1];
    Arrays.fill(dashes, "─".repeat(width));
    return left + String.join(String.valueOf(middle), dashes) + right;
  }

  private static String centred(String s, int width) {
    int left = (width - s.length()) / 2;
    return " ".repeat(left) + s + " ".repeat(width - s.length() - left);
  }

  // ---- SVG ----

  private String drawing() {
    double height = rowDim < 0 ? SCALE / 8.0 : SCALE;
    StringBuilder out =
        new StringBuilder("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"")
            .append(SCALE + 20)
            .append("\" height=\"")
            .append(Math.round(height) + 50)
            .append("\" viewBox=\"0 0 ")
            .append(SCALE + 20)
            .append(' ')
            .append(Math.round(height) + 50)
            .append("\" font-family=\"sans-serif\" font-size=\"12\">\n<text x=\"10\" y=\"20\">")
            .append(escaped(caption()))
            .append("</text>\n");
    double totalRows = rows.length == 0 ? 1 : Math.max(1, rows[rows.length - 1]);
    double totalColumns = columns.length == 0 ? 1 : Math.max(1, columns[columns.length - 1]);
    for (int i = 0; i < holders.length; i++) {
      for (int k = 0; k < holders[i].length; k++) {
        double x = 10 + SCALE * columns[k] / totalColumns;
        double y = 35 + height * rows[i] / totalRows;
        double w = SCALE * (columns[k + 1] - columns[k]) / totalColumns;
        double h = height * (rows[i + 1] - rows[i]) / totalRows;
        out.append(
            String.format(
                java.util.Locale.ROOT,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\""
                    + " stroke=\"white\"/>%n<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\""
                    + " fill=\"white\">%s</text>%n",
                x,
                y,
                w,
                h,
                COLOURS[Math.floorMod(i * holders[i].length + k, COLOURS.length)],
                x + w / 2,
                y + h / 2 + 4,
                escaped(holders[i][k])));
      }
    }
    return out.append("</svg>\n").toString();
  }

  private static String escaped(String s) {
    return s.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }
}
