package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The mpi backend under each MPI that is installed; skipped where none is. */
@Timeout(600)
class MpiTest {
  @TempDir Path folder;

  /** How processes are started, and under which names. */
  enum Library {
    OPEN_MPI("Open MPI", "openmpi-bin", "mpirun.openmpi", "mpirun"),
    MPICH("MPICH", "mpich", "mpirun.mpich", "mpiexec.hydra");

    private final String words;
    private final String debianPackage;
    private final String[] programs;

    Library(String words, String debianPackage, String... programs) {
      this.words = words;
      this.debianPackage = debianPackage;
      this.programs = programs;
    }

    /** The command, or nothing where it is not installed. */
    List<String> command(int n) throws Exception {
      for (String p : programs) {
        Path path = find(p);
        if (path != null && isThis(path)) {
          return this == OPEN_MPI
              ? List.of(path.toString(), "--oversubscribe", "-n", String.valueOf(n))
              : List.of(path.toString(), "-n", String.valueOf(n));
        }
      }
      return List.of();
    }

    private boolean isThis(Path program) throws Exception {
      Process p =
          new ProcessBuilder(program.toString(), "--version").redirectErrorStream(true).start();
      String said = new String(p.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      return p.waitFor() == 0 && said.contains("Open MPI") == (this == OPEN_MPI);
    }

    private static Path find(String program) {
      return Arrays.stream(System.getenv("PATH").split(File.pathSeparator))
          .map(d -> Path.of(d, program))
          .filter(Files::isExecutable)
          .findFirst()
          .orElse(null);
    }
  }

  private record Ended(int code, String said) {}

  private Ended run(Library library, int n, String what) throws Exception {
    List<String> command = new ArrayList<>(library.command(n));
    assumeTrue(
        !command.isEmpty(),
        library.words
            + " is not installed (Debian: apt-get install "
            + library.debianPackage
            + ")");
    return run(command, Map.of(), MpiRank.class.getName(), what);
  }

  private Ended run(List<String> launcher, Map<String, String> environment, String... main)
      throws Exception {
    List<String> command = new ArrayList<>(launcher);
    command.addAll(
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            System.getProperty("java.class.path")));
    command.addAll(List.of(main));
    Path out = Files.createTempFile(folder, "out", ".txt");
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile());
    builder.environment().keySet().removeAll(List.of("RANK", "WORLD_SIZE", "MASTER_ADDR"));
    builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT", "1");
    builder.environment().put("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    builder.environment().putAll(environment);
    Process process = builder.start();
    if (!process.waitFor(300, TimeUnit.SECONDS)) {
      process.destroy();
      process.waitFor(5, TimeUnit.SECONDS);
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly();
      throw new AssertionError(command + " did not end: " + Files.readString(out));
    }
    return new Ended(process.exitValue(), Files.readString(out));
  }

  private static void check(Ended ended, String... parts) {
    assertThat(ended.said()).contains(parts).doesNotContain("failed ");
    assertThat(ended.code()).as(ended.said()).isZero();
  }

  /** The same specifications as on the host backend (P28, P29, P30, P31, P32, P34 among them). */
  @ParameterizedTest
  @EnumSource
  void keepsTheSpecificationsOfTheHostBackend(Library library) throws Exception {
    Ended ended = run(library, 3, "specifications");
    check(ended, "ok any source, strided, empty", "ok asynchronous");
    assertThat(ended.said().lines().filter(l -> l.startsWith("ok ")).count()).isEqualTo(50);
  }

  @ParameterizedTest
  @EnumSource
  void makesGroupsOfAnyMembers(Library library) throws Exception {
    check(run(library, 4, "groups"), "ok many made and destroyed", "ok joined again");
  }

  @ParameterizedTest
  @EnumSource
  void namesWhoIsMissing(Library library) throws Exception {
    check(run(library, 3, "timeouts"), "ok who is missing is named", "ok abort ends what waits");
  }

  /** P48: MPI says nothing of a rank that fails; the store does. */
  @ParameterizedTest
  @EnumSource
  void tellsOfAFailure(Library library) throws Exception {
    assertThat(run(library, 2, "throws-on-1").said()).contains("ok told of the failure");
  }

  @Test
  void aloneItIsAWorldOfOne() throws Exception {
    assumeTrue(
        BackendRegistry.isAvailable("mpi"),
        String.valueOf(BackendRegistry.find("mpi").unavailableReason()));
    check(run(List.of(), Map.of(), MpiRank.class.getName(), "hello"), "ok hello 1", "cpu:mpi");
  }

  /** P60: one message: what was looked for, and what to install. */
  @Test
  void withoutALibraryItSaysWhatToInstall() throws Exception {
    Ended ended =
        run(
            List.of(),
            Map.of("WEFT_MPI_LIBRARY", "/nowhere/libmpi.so"),
            MpiRank.class.getName(),
            "hello");
    assertThat(ended.code()).isNotZero();
    assertThat(ended.said())
        .contains("backend 'mpi' cannot be used here: WEFT_MPI_LIBRARY is '/nowhere/libmpi.so'");
  }

  /** Without MPI's own way to meet, mpirun's processes need a place; no silent worlds of one. */
  @ParameterizedTest
  @EnumSource
  void anotherBackendNeedsAMasterAddress(Library library) throws Exception {
    Map<String, String> environment =
        library == Library.OPEN_MPI
            ? Map.of("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "4")
            : Map.of("PMI_RANK", "1", "PMI_SIZE", "4");
    assertThatThrownBy(() -> Distributed.init(InitOptions.DEFAULT.withEnvironment(environment)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("mpirun started this process as rank 1 of 4")
        .hasMessageContaining("MASTER_ADDR is not set")
        .hasMessageContaining("backend 'mpi', which needs neither");
  }

  @Test
  void ranksAsThreadsAreRefused() {
    assumeTrue(
        BackendRegistry.isAvailable("mpi"),
        String.valueOf(BackendRegistry.find("mpi").unavailableReason()));
    assertThatThrownBy(
            () -> LocalWorld.of(2).backend("mpi").run(rank -> Distributed.barrier().await()))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining("needs a process for each rank");
  }
}
