package dev.weft.examples.guide;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** Links from page to page, to files, and to headings. */
class LinksTest {
  private static final Pattern LINK = Pattern.compile("!?\\[[^\\]]*\\]\\(([^)\\s]+)\\)");
  private static final Pattern HEADING = Pattern.compile("(?m)^#+ +(.+?) *$");
  private static final Pattern FENCED = Pattern.compile("(?ms)^```.*?^```$");

  @Test
  void everyRelativeLinkLeadsSomewhere() throws IOException {
    List<String> broken = new ArrayList<>();
    int found = 0;
    for (Path page : DocPages.all()) {
      Matcher m = LINK.matcher(prose(page));
      while (m.find()) {
        String link = m.group(1);
        if (link.matches("[a-z]+:.*")) {
          continue; // another site
        }
        found++;
        String[] parts = link.split("#", 2);
        Path target = parts[0].isEmpty() ? page : page.resolveSibling(parts[0]).normalize();
        if (!Files.exists(target) || (parts.length == 2 && !anchors(target).contains(parts[1]))) {
          broken.add(DocPages.ROOT.relativize(page) + " -> " + link);
        }
      }
    }
    assertThat(broken).isEmpty();
    assertThat(found).isGreaterThan(50);
  }

  /** A newcomer comes to every page from the index, link by link. */
  @Test
  void everyPageIsReachedFromTheIndex() throws IOException {
    Set<Path> reached = new HashSet<>();
    List<Path> next = new ArrayList<>(List.of(DocPages.ROOT.resolve("docs/index.md").normalize()));
    while (!next.isEmpty()) {
      Path page = next.remove(next.size() - 1);
      if (!reached.add(page)) {
        continue;
      }
      Matcher m = LINK.matcher(prose(page));
      while (m.find()) {
        String file = m.group(1).split("#", 2)[0];
        if (file.endsWith(".md") && !file.contains(":")) {
          next.add(page.resolveSibling(file).normalize());
        }
      }
    }
    Set<Path> unreached = new TreeSet<>();
    for (Path page : DocPages.all()) {
      if (!reached.contains(page.normalize())) {
        unreached.add(page);
      }
    }
    assertThat(unreached).isEmpty();
  }

  private static String prose(Path page) throws IOException {
    return FENCED.matcher(Files.readString(page)).replaceAll("");
  }

  /** The anchors that GitHub makes of a page's headings. */
  private static Set<String> anchors(Path page) throws IOException {
    Set<String> anchors = new HashSet<>();
    Matcher m = HEADING.matcher(prose(page));
    while (m.find()) {
      String text = m.group(1).toLowerCase(Locale.ROOT).replaceAll("[^\\p{L}\\p{N}\\- _]", "");
      anchors.add(text.replace(' ', '-'));
    }
    return anchors;
  }
}
