package dev.weft.examples;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

class ReadmeTest {
  /** The README's program is the one that is compiled and run. */
  @Test
  void theProgramOfTheReadmeIsTheExample() throws IOException {
    String readme = Files.readString(Path.of("../README.md"));
    int start = readme.indexOf("```java", readme.indexOf("<!-- from HybridTraining.train -->"));
    int end = readme.indexOf("```\n", start + 7);
    String shown = readme.substring(readme.indexOf('\n', start) + 1, end);

    Path source = Path.of("src/main/java/dev/weft/examples/HybridTraining.java");
    List<String> lines = Files.readAllLines(source);
    int from = lines.indexOf("  static void train() {") + 1;
    StringBuilder body = new StringBuilder();
    for (String line : lines.subList(from, lines.size())) {
      if (line.startsWith("    if (Distributed.rank() == 0) {") || line.equals("  }")) {
        break;
      }
      body.append(line.isEmpty() ? line : line.substring(4)).append('\n');
    }
    assertThat(shown).isEqualTo(body.toString());
  }

  @Test
  void theProgramRuns() {
    HybridTraining.main(new String[] {"threads"});
  }
}
