package dev.weft.examples.trainer;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.xml.sax.InputSource;

class ReportTest {
  private static List<LossRow> rows(int count) {
    List<LossRow> rows = new ArrayList<>();
    for (int i = 1; i <= count; i++) {
      Double eval = i % 10 == 0 ? Double.valueOf(3.0 / i) : null;
      rows.add(new LossRow(i, 100L * i, 5.0 / i, 2.0 / i, 1e-3, 1000 + i, eval));
    }
    return rows;
  }

  private static String html(List<LossRow> rows) {
    return new Report("A <run>", "8 ranks", rows, Map.of("--mesh", "dp=2 & more"), 1.0, 1000)
        .text("Pipeline", "rank 0   F0 -> B0")
        .html();
  }

  /** Nothing is loaded: neither a link nor an address is in the page. */
  @Test
  void thePageStandsAlone() {
    String page = html(rows(30));
    assertThat(page).doesNotContainPattern("https?:|<link|<img|@import|url\\(|src=");
    assertThat(page).contains("prefers-color-scheme: dark").doesNotContain("{{");
    assertThat(page).contains("A &lt;run&gt;").contains("dp=2 &amp; more").contains("F0 -&gt; B0");
  }

  /** Every figure is well-formed, and its lines stay inside. */
  @Test
  void linesAreInsideTheirFrames() throws Exception {
    for (int count : new int[] {1, 2, 30, 5000}) {
      Matcher svg = Pattern.compile("<svg.*?</svg>", Pattern.DOTALL).matcher(html(rows(count)));
      int found = 0;
      while (svg.find()) {
        found++;
        var parser = DocumentBuilderFactory.newInstance().newDocumentBuilder();
        assertThat(parser.parse(new InputSource(new StringReader(svg.group())))).isNotNull();
        Matcher point = Pattern.compile("[ML](-?[0-9.]+) (-?[0-9.]+)(?!H)").matcher(svg.group());
        int points = 0;
        while (point.find()) {
          points++;
          assertThat(Double.parseDouble(point.group(1))).isBetween(0.0, 100.0);
          assertThat(Double.parseDouble(point.group(2))).isBetween(0.0, 100.0);
        }
        assertThat(points).isBetween(1, 3000);
      }
      assertThat(found).isEqualTo(4);
    }
  }

  @Test
  void whatIsThinnedKeepsItsPeaks() {
    double[] x = new double[10_000];
    double[] y = new double[10_000];
    for (int i = 0; i < x.length; i++) {
      x[i] = i;
    }
    y[7_777] = 42;
    String page = new Plot("Peaks", "%.0f").line("l", "main", false, x, y).html();
    assertThat(page).contains("\"42\"");
    assertThat(page.length()).isLessThan(60_000);
  }

  @Test
  void valuesThatAreNotFiniteAreLeftOut() {
    double[] x = {1, 2, 3};
    double[] y = {1, Double.NaN, Double.POSITIVE_INFINITY};
    assertThat(new Plot("p", "%.1f").line("l", "main", true, x, y).html())
        .doesNotContain("NaN")
        .doesNotContain("Infinity");
    assertThat(
            new Plot("p", "%.1f")
                .line("l", "main", true, x, new double[] {Double.NaN, Double.NaN, Double.NaN})
                .html())
        .isEmpty();
  }

  @Test
  void ticksAreRound() {
    assertThat(Plot.ticks(0, 10, 5)).containsExactly(0, 2, 4, 6, 8, 10);
    assertThat(Plot.ticks(1.9, 6.1, 5)).containsExactly(2, 3, 4, 5, 6);
    assertThat(Plot.ticks(-0.2, 1.1, 5)[0]).isEqualTo(0.0);
  }

  /** What is read back is what was written, to the last bit. */
  @Test
  void linesOfTheFileAreExact() {
    LossRow row = new LossRow(3, 1536, 5.123456789012345, 1 / 3.0, 3e-4, 123.4, 4.2e-17);
    assertThat(LossRow.parse(row.toCsv())).isEqualTo(row);
    LossRow plain = row.withEvalLoss(null);
    assertThat(LossRow.parse(plain.toCsv())).isEqualTo(plain);
  }
}
