package dev.weft.examples.guide;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.LocalWorld;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/**
 * The programs in {@code docs} are those of this package, and print what the text says. A block of
 * Java stands under {@code <!-- from Class.method -->}; one of text under {@code <!-- output -->}
 * is what the program before it prints.
 */
class GuideTest {
  private static final Path DOCS = Path.of("../docs");
  private static final Path SOURCES = Path.of("src/main/java/dev/weft/examples/guide");
  private static final Pattern BLOCK =
      Pattern.compile(
          "(?:<!-- (from (\\w+)\\.(\\w+)|output) -->\\n)?```(java|text)\\n(.*?)```\\n",
          Pattern.DOTALL);

  /** A program of a page. */
  private record Program(String page, String type, String method, String code, String output) {}

  private static List<Path> pages() throws IOException {
    List<Path> pages = new ArrayList<>(List.of(DOCS.resolve("migration.md")));
    try (Stream<Path> guide = Files.list(DOCS.resolve("guide"))) {
      guide.sorted().forEach(pages::add);
    }
    return pages;
  }

  private static List<Program> programs() throws IOException {
    List<Program> all = new ArrayList<>();
    for (Path page : pages()) {
      String name = page.getFileName().toString();
      Matcher m = BLOCK.matcher(Files.readString(page));
      Program open = null;
      while (m.find()) {
        String marker = m.group(1);
        if (m.group(4).equals("java")) {
          assertThat(marker).as("a block of Java in %s without its source", name).isNotNull();
          open = new Program(name, m.group(2), m.group(3), m.group(5), "");
          all.add(open);
        } else if ("output".equals(marker)) {
          assertThat(open).as("an output in %s before any program", name).isNotNull();
          all.remove(open);
          all.add(new Program(name, open.type, open.method, open.code, m.group(5)));
          open = null;
        }
      }
    }
    return all;
  }

  private static String body(String type, String method) throws IOException {
    List<String> lines = Files.readAllLines(SOURCES.resolve(type + ".java"));
    int from = -1;
    for (int i = 0; i < lines.size(); i++) {
      if (lines.get(i).startsWith("  static void " + method + "()")) {
        from = i + 1;
      }
    }
    assertThat(from).as("%s.%s", type, method).isPositive();
    StringBuilder body = new StringBuilder();
    for (String line : lines.subList(from, lines.size())) {
      if (line.equals("  }")) {
        break;
      }
      body.append(line.isEmpty() ? line : line.substring(4)).append('\n');
    }
    return body.toString();
  }

  @TestFactory
  Stream<DynamicTest> everyProgramIsTheOneThatRunsAndPrintsWhatThePageSays() throws IOException {
    return programs().stream()
        .map(
            p ->
                DynamicTest.dynamicTest(
                    p.page + ": " + p.type + "." + p.method,
                    () -> {
                      assertThat(p.code).isEqualTo(body(p.type, p.method));
                      assertThat(run(p.type, p.method)).isEqualTo(p.output);
                    }));
  }

  @Test
  void noProgramIsLeftOut() throws Exception {
    List<String> shown = new ArrayList<>();
    for (Program p : programs()) {
      shown.add(p.type + "." + p.method);
    }
    List<String> there = new ArrayList<>();
    for (Class<?> type :
        List.of(
            MeshGuide.class,
            PlacementsGuide.class,
            TensorParallelGuide.class,
            CheckpointsGuide.class,
            ParallelGuide.class,
            TrainerGuide.class,
            ProfilingGuide.class)) {
      for (Method m : type.getDeclaredMethods()) {
        if (m.isAnnotationPresent(Ranks.class)) {
          there.add(type.getSimpleName() + "." + m.getName());
        }
      }
    }
    assertThat(shown).containsExactlyInAnyOrderElementsOf(there);
  }

  private static String run(String type, String method) throws Exception {
    Method m = Class.forName("dev.weft.examples.guide." + type).getDeclaredMethod(method);
    m.setAccessible(true);
    int ranks = m.getAnnotation(Ranks.class).value();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream before = System.out;
    System.setOut(new PrintStream(bytes, true, StandardCharsets.UTF_8));
    try {
      if (ranks == 0) {
        m.invoke(null);
      } else {
        LocalWorld.run(ranks, rank -> m.invoke(null));
      }
    } catch (InvocationTargetException e) {
      throw new AssertionError(e.getCause());
    } finally {
      System.setOut(before);
    }
    return bytes.toString(StandardCharsets.UTF_8);
  }

  // ---- the table of names ----

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
    for (String line : Files.readAllLines(DOCS.resolve("migration.md"))) {
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
