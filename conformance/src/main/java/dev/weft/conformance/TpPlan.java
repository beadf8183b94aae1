package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.dtensor.Placement;
import dev.weft.dtensor.Placements;
import dev.weft.dtensor.tp.ParallelStyle;
import dev.weft.dtensor.tp.Styles;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The plans of tp.json in their plain notation. */
final class TpPlan {
  private static final Pattern STYLE = Pattern.compile("(\\w+)\\((.*)\\)");

  private TpPlan() {}

  static Map<String, ParallelStyle> read(JsonNode plan) {
    Map<String, ParallelStyle> styles = new LinkedHashMap<>();
    plan.properties().forEach(e -> styles.put(e.getKey(), style(e.getValue().asText())));
    return styles;
  }

  private static ParallelStyle style(String text) {
    Matcher m = STYLE.matcher(text);
    if (!m.matches()) {
      throw new CaseRunner.Mismatch("unknown style " + text);
    }
    String options = m.group(2);
    return switch (m.group(1)) {
      case "Colwise" -> cut(Styles.colwise(), options);
      case "Rowwise" -> cut(Styles.rowwise(), options);
      case "Sequence" -> Styles.sequence();
      case "PrepareInput" -> {
        String[] ends = options.split(",", -1)[0].split("->", -1);
        Styles.Input input =
            Styles.prepareInput(Placements.parse(ends[0]), Placements.parse(ends[1]));
        yield options.contains("local_output=true") ? input.localOutput(true) : input;
      }
      default -> throw new CaseRunner.Mismatch("unknown style " + text);
    };
  }

  private static Styles.Cut cut(Styles.Cut style, String options) {
    Styles.Cut out = style;
    for (String option : options.isEmpty() ? new String[0] : options.split(",", -1)) {
      String[] pair = option.trim().split("=", -1);
      out =
          switch (pair[0]) {
            case "in" -> out.input(placement(pair[1]));
            case "out" -> out.output(placement(pair[1]));
            case "local_output" -> out.localOutput(Boolean.parseBoolean(pair[1]));
            default -> throw new CaseRunner.Mismatch("unknown option " + option);
          };
    }
    return out;
  }

  private static Placement placement(String text) {
    return Placements.parse(text);
  }
}
