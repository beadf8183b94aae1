package dev.weft.c10d.debug;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.weft.c10d.DistributedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A dump on demand, of a rank that may be stuck. */
@Timeout(60)
class ControlPipeTest {
  @TempDir Path folder;

  private FlightRecorder recorder() {
    return new FlightRecorder(
        3,
        FlightRecorderConfig.fromEnvironment(
            Map.of("WEFT_FR_DUMP_TEMP_FILE", folder.resolve("dump_").toString())));
  }

  @Test
  void writingToItDumps() throws Exception {
    assumeTrue(Files.isExecutable(Path.of("/usr/bin/mkfifo")), "there is no mkfifo");
    FlightRecorder recorder = recorder();
    GroupLog log = recorder.group("world", "", List.of(3, 4), 0, "gloo");
    RecordedCall stuck = log.collective("all_reduce", List.of(), List.of(), 1000);
    String prefix =
        ControlPipe.prefix(Map.of("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", folder + "/pipe_"));
    assertThat(prefix).isNotNull();
    Path pipe = folder.resolve("pipe_3.pipe");
    Files.writeString(pipe, "left by an earlier run");
    try (ControlPipe open = ControlPipe.open(prefix, 3, recorder)) {
      assertThat(stuck.isActive()).isTrue();
      for (int i = 0; i < 2; i++) {
        Files.deleteIfExists(folder.resolve("dump_3"));
        Files.writeString(pipe, "1\n", StandardOpenOption.WRITE);
        while (!Files.exists(folder.resolve("dump_3"))) {
          Thread.sleep(10); // until the test's time limit
        }
      }
      assertThat(open).isNotNull();
    }
    assertThat(pipe).doesNotExist();
    Object dump = PickleReader.read(Files.readAllBytes(folder.resolve("dump_3")));
    assertThat(String.valueOf(dump)).contains("gloo:all_reduce").contains("a dump was asked for");
  }

  @Test
  void aPipeThatCannotBeMadeIsAnError() {
    assertThatThrownBy(() -> ControlPipe.open(folder + "/none/", 0, recorder()))
        .isInstanceOf(DistributedException.class)
        .hasMessageContaining("the named pipe '" + folder.resolve("none/0.pipe"))
        .hasMessageContaining("WEFT_DEBUG_INFO_PIPE_FILE");
  }
}
