package dev.weft.examples.guide;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The names in {@code docs/migration.md}. */
class MigrationTableTest {
  private static final List<String> PACKAGES =
      List.of(
          "dev.weft.c10d",
          "dev.weft.c10d.store",
          "dev.weft.c10d.elastic",
          "dev.weft.funcol",
          "dev.weft.mesh",
          "dev.weft.dtensor",
          "dev.weft.dtensor.tp",
          "dev.weft.dtensor.checkpoint",
          "dev.weft.parallel",
          "dev.weft.parallel.pipeline",
          "dev.weft.tensor",
          "dev.weft.tensor.op",
          "dev.weft.tensor.autograd",
          "dev.weft.nn",
          "dev.weft.optim");

  /** Every name in the right column of the migration table, {@code Type.member}, exists. */
  @Test
  void theNamesOfTheMigrationTableExist() throws IOException {
    Pattern name = Pattern.compile("`([A-Z]\\w*)((?:\\.\\w+)*)(?:\\([^`]*\\))?`");
    Map<String, String> unknown = new TreeMap<>();
    int found = 0;
    for (String line : Files.readAllLines(DocPages.ROOT.resolve("docs/migration.md"))) {
      String[] cells = line.split("(?<!\\\\)\\|", -1);
      if (cells.length < 4) {
        continue;
      }
      Matcher m = name.matcher(cells[2]);
      while (m.find()) {
        found++;
        if (!exists(m.group(1), m.group(2))) {
          unknown.put(m.group(), cells[1].trim());
        }
      }
    }
    assertThat(unknown).as("names that do not exist, and what they stand for").isEmpty();
    assertThat(found).isGreaterThan(100);
  }

  private static boolean exists(String type, String members) {
    for (String p : PACKAGES) {
      try {
        Class<?> c = Class.forName(p + "." + type);
        if (members.isEmpty() || hasMember(c, members.substring(1).split("\\.", -1))) {
          return true;
        }
      } catch (ClassNotFoundException e) {
        continue; // another package may have it
      }
    }
    return false;
  }

  private static boolean hasMember(Class<?> type, String[] path) {
    String first = path[0];
    for (Class<?> nested : type.getClasses()) {
      if (nested.getSimpleName().equals(first)) {
        return path.length == 1 || hasMember(nested, Arrays.copyOfRange(path, 1, path.length));
      }
    }
    return path.length == 1
        && (Arrays.stream(type.getMethods()).anyMatch(m -> m.getName().equals(first))
            || Arrays.stream(type.getFields()).anyMatch(f -> f.getName().equals(first)));
  }
}
