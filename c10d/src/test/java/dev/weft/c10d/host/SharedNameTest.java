package dev.weft.c10d.host;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What killed processes leave of shared memory goes when the next one makes some. */
@Timeout(60)
class SharedNameTest {
  private static final SharedLayout LAYOUT = new SharedLayout(2, 0, 1);

  @TempDir private Path folder;

  /** A rank that is killed before its peers have mapped the file. */
  static final class Killed {
    private Killed() {}

    public static void main(String[] args) {
      Map<String, String> environment = Map.of(SharedOffer.FOLDER, args[0]);
      String made = SharedOffer.make(SharedOffer.newFile(environment), LAYOUT, environment);
      Runtime.getRuntime().halt(SharedOffer.isOffer(made) ? 0 : 1);
    }
  }

  private List<Path> files() throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      return all.toList();
    }
  }

  private Path file(SharedName name) throws IOException {
    return Files.createFile(folder.resolve(name.text()));
  }

  @Test
  void whatAKilledRankHasLeftIsRemovedAtTheNextStart() throws Exception {
    Process killed =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                Killed.class.getName(),
                folder.toString())
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    assertThat(killed.waitFor()).isZero();
    Path left = files().get(0);
    assertThat(Objects.requireNonNull(SharedName.of(left)).process()).isEqualTo(killed.pid());
    assertThat(left).hasSize(LAYOUT.bytes());
    Path unused = SharedOffer.newFile(Map.of(SharedOffer.FOLDER, folder.toString()));
    assertThat(files()).isEmpty();
  }

  @Test
  void filesOfThoseWhoRunStay() throws IOException {
    SharedName own = SharedName.random();
    Path mine = file(own);
    Path earlier =
        file(new SharedName(own.place(), own.process(), own.started() - 1, "0".repeat(32)));
    Path elsewhere = file(new SharedName("1", 1L << 40, 1, "1".repeat(32)));
    Path old = file(new SharedName("1", own.process(), own.started(), "2".repeat(32)));
    Files.setLastModifiedTime(old, FileTime.from(Instant.now().minus(Duration.ofHours(2))));
    Path other = Files.createFile(folder.resolve("weft-notes"));
    SharedName.sweep(folder);
    assertThat(files()).containsExactlyInAnyOrder(mine, elsewhere, other);
    assertThat(earlier).doesNotExist(); // its maker's id is this process's now
  }

  @Test
  void aNameTellsItsMaker() throws IOException {
    SharedName own = SharedName.random();
    assertThat(SharedName.of(Path.of("/dev/shm", own.text()))).isEqualTo(own);
    assertThat(own.process()).isEqualTo(ProcessHandle.current().pid());
    assertThat(own.started()).isPositive().isEqualTo(SharedName.startOf(own.process()));
    assertThat(SharedName.startOf(1L << 40)).isEqualTo(-1);
    assertThat(SharedName.of(Path.of("weft-1-2-3"))).isNull();
  }
}
