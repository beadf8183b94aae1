package dev.weft.examples.guide;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The pages of the documentation, and the programs that they show. */
final class DocPages {
  static final Path ROOT = Path.of("..");
  private static final Path SOURCES = Path.of("src/main/java/dev/weft/examples");
  private static final Pattern BLOCK =
      Pattern.compile(
          "(?:<!-- (?:from (\\w+)(?:\\.(\\w+))?|(output)|message of (\\w+)\\.(\\w+)) -->\\n)?"
              + "```(\\w*)\\n(.*?)```\\n",
          Pattern.DOTALL);

  /** How a block of text is made. */
  enum Kind {
    /** Not run. */
    COMPILED,
    /** What the program prints. */
    OUTPUT,
    /** What the program throws. */
    MESSAGE
  }

  /**
   * A program of a page.
   *
   * @param method a method of the class, or empty for the whole file and its {@code main}
   * @param code what the page shows of it; empty where it shows only what comes of it
   * @param text what it prints or throws
   */
  record Program(String page, String type, String method, String code, Kind kind, String text) {
    String name() {
      return method.isEmpty() ? type : type + "." + method;
    }
  }

  private DocPages() {}

  /** All pages: those in {@code docs}, at any depth, and those of the root. */
  static List<Path> all() throws IOException {
    List<Path> pages = new ArrayList<>();
    for (Path folder : List.of(ROOT, ROOT.resolve("docs"))) {
      int depth = folder == ROOT ? 1 : Integer.MAX_VALUE;
      try (Stream<Path> files = Files.walk(folder, depth)) {
        files.filter(p -> p.toString().endsWith(".md")).sorted().forEach(pages::add);
      }
    }
    return pages;
  }

  /** All programs; a block of Java that does not say where it comes from fails. */
  static List<Program> programs() throws IOException {
    List<Program> all = new ArrayList<>();
    for (Path page : all()) {
      addPrograms(ROOT.relativize(page).toString(), Files.readString(page), all);
    }
    return all;
  }

  private static void addPrograms(String page, String text, List<Program> all) {
    Matcher m = BLOCK.matcher(text);
    Program open = null;
    while (m.find()) {
      String shown = m.group(7);
      if (m.group(6).equals("java")) {
        assertThat(m.group(1))
            .as("the source of a block of Java in %s:\n%s", page, shown)
            .isNotNull();
        String method = m.group(2) == null ? "" : m.group(2);
        open = new Program(page, m.group(1), method, shown, Kind.COMPILED, "");
        all.add(open);
      } else if (m.group(3) != null) {
        assertThat(open).as("a program before an output in %s", page).isNotNull();
        all.remove(open);
        all.add(new Program(page, open.type, open.method, open.code, Kind.OUTPUT, shown));
        open = null;
      } else if (m.group(4) != null) {
        all.add(new Program(page, m.group(4), m.group(5), "", Kind.MESSAGE, shown));
      }
    }
  }

  /** The class of a program, wherever it is among the examples. */
  static Class<?> type(String simpleName) throws IOException, ClassNotFoundException {
    String file = SOURCES.relativize(source(simpleName)).toString();
    return Class.forName(
        "dev.weft.examples." + file.substring(0, file.length() - 5).replace('/', '.'));
  }

  /** The classes of a package of the examples. */
  static List<Class<?>> types(String folder) throws IOException, ClassNotFoundException {
    List<Class<?>> types = new ArrayList<>();
    try (Stream<Path> files = Files.list(SOURCES.resolve(folder))) {
      for (Path file : files.sorted().toList()) {
        String name = file.getFileName().toString();
        if (name.endsWith(".java") && !name.equals("package-info.java")) {
          types.add(Class.forName("dev.weft.examples." + folder + "." + name.replace(".java", "")));
        }
      }
    }
    return types;
  }

  private static Path source(String simpleName) throws IOException {
    try (Stream<Path> files = Files.walk(SOURCES)) {
      List<Path> found = files.filter(p -> p.endsWith(simpleName + ".java")).toList();
      assertThat(found).as("the source of %s", simpleName).hasSize(1);
      return found.get(0);
    }
  }

  /** What a page has to show of a program: its file, or the lines of its method. */
  static String code(String type, String method) throws IOException {
    List<String> lines = Files.readAllLines(source(type));
    if (method.isEmpty()) {
      return String.join("\n", lines) + "\n";
    }
    int from = -1;
    for (int i = 0; i < lines.size(); i++) {
      if (lines.get(i).startsWith("  static void " + method + "(")) {
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
}
