package dev.weft.c10d.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.StoreException;
import dev.weft.c10d.StoreTimeoutException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is particular to a store in a file. */
class FileStoreTest {
  private static final Duration LONG = Duration.ofSeconds(20);

  @TempDir private Path folder;

  private FileStore open(int worldSize) {
    return FileStore.open(folder.resolve("store"), worldSize, LONG);
  }

  @Test
  void theLastOfItsUsersRemovesTheFile() {
    var one = open(2);
    one.close();
    assertThat(folder.resolve("store")).as("the second has not come yet").exists();
    var two = open(2);
    two.close();
    two.close();
    assertThat(folder.resolve("store")).doesNotExist();
    try (var unknown = open(0)) {
      unknown.set("k", "v");
    }
    assertThat(folder.resolve("store")).as("a world of unknown size").exists();
  }

  @Test
  void anEmptyFileWillDo() throws Exception {
    Files.createFile(folder.resolve("store"));
    try (var store = open(1)) {
      store.set("k", "v");
      assertThat(store.getString("k")).isEqualTo("v");
    }
  }

  /**
   * A process that is killed while it writes leaves half a record, which nobody must take for a
   * value.
   */
  @Test
  void aReaderSeesWhatIsWholeAndAWriterGoesOnBehindIt() throws Exception {
    var store = open(0);
    store.set("a", "whole");
    long whole = Files.size(folder.resolve("store"));
    store.set("b", "torn");
    store.close();
    try (var file = new RandomAccessFile(folder.resolve("store").toFile(), "rw")) {
      file.setLength(whole + 11);
    }
    try (var after = open(0)) {
      assertThat(after.listKeys()).containsExactly("a");
      after.set("c", "new");
      try (var other = open(0)) {
        assertThat(other.multiGet(List.of("a", "c"))).hasSize(2);
      }
    }
  }

  @Test
  void aCorruptFileIsReported() throws Exception {
    var store = open(0);
    store.set("a", "v");
    try (var file = new RandomAccessFile(folder.resolve("store").toFile(), "rw")) {
      file.seek(13);
      file.write(77);
    }
    assertThatThrownBy(() -> open(0))
        .isInstanceOf(StoreException.class)
        .hasMessageContaining("corrupt at byte 13");
    store.close();
  }

  /** A process that was stopped while it held the lock must not stop the others without a word. */
  @Test
  void aLockThatIsNotReleasedTimesOut() throws Exception {
    try (var store = open(0)) {
      var holder = java(LockHolder.class, folder.resolve("store").toString());
      try {
        assertThat(holder.getInputStream().read()).isEqualTo('L');
        assertThatThrownBy(() -> store.withTimeout(Duration.ofMillis(200)).set("k", "v"))
            .isInstanceOf(StoreTimeoutException.class)
            .hasMessageContaining("locked by another process")
            .hasMessageContaining("200 ms");
      } finally {
        holder.destroyForcibly();
      }
      store.set("k", "v");
      assertThat(store.getString("k")).isEqualTo("v");
    }
  }

  @Test
  void processesShareIt() throws Exception {
    var processes = new ArrayList<Process>();
    for (int i = 0; i < 3; i++) {
      processes.add(java(Adder.class, folder.resolve("store").toString()));
    }
    try (var store = open(4)) {
      store.set("go", "");
      for (Process process : processes) {
        assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).isZero();
      }
      assertThat(store.getString("count")).isEqualTo("300");
      assertThat(store.getString("log")).hasSize(300);
    }
    assertThat(folder.resolve("store")).doesNotExist();
  }

  private static Process java(Class<?> main, String... arguments) throws Exception {
    var command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx64m",
                "-cp",
                System.getProperty("java.class.path"),
                main.getName()));
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
  }

  /** Holds the lock of a file until it is killed. */
  static final class LockHolder {
    private LockHolder() {}

    public static void main(String[] args) throws Exception {
      try (var file = new RandomAccessFile(args[0], "rw");
          var lock = file.getChannel().lock()) {
        System.out.print(lock.isValid() ? "L" : "?");
        System.out.flush();
        Thread.sleep(60_000);
      }
    }
  }

  /** Adds 100 times to a shared count. */
  static final class Adder {
    private Adder() {}

    public static void main(String[] args) {
      try (var store = FileStore.open(Path.of(args[0]), 4, LONG)) {
        store.waitFor(List.of("go"));
        for (int i = 0; i < 100; i++) {
          store.add("count", 1);
          store.append("log", "x");
        }
      }
    }
  }
}
