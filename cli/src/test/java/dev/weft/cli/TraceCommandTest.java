package dev.weft.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.Work;
import dev.weft.profiler.Profiler;
import dev.weft.profiler.Schedule;
import dev.weft.tensor.Tensor;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TraceCommandTest {
  @TempDir private Path folder;
  private final StringWriter out = new StringWriter();
  private final StringWriter err = new StringWriter();

  private int execute(String... args) {
    return Weft.commandLine()
        .setOut(new PrintWriter(out))
        .setErr(new PrintWriter(err))
        .execute(args);
  }

  @Test
  void tracesOfAllRanksAreJoinedAndSummedUp() {
    LocalWorld.run(
        2,
        rank -> {
          try (Profiler profiler = Profiler.start(folder, Schedule.once(0, 0, 1))) {
            Work unused = Distributed.world().allReduce(Tensor.of(new float[8], 8), ReduceOp.SUM);
            profiler.step();
          }
        });
    Path joined = folder.resolve("joined.json.gz");
    assertThat(execute("trace", "merge", folder.toString(), "-o", joined.toString())).isZero();
    assertThat(joined).isNotEmptyFile();
    assertThat(out.toString())
        .contains("traces of 2 of 2 ranks")
        .containsPattern("world of 2 +all_reduce +2 ")
        .contains("joined trace: " + joined);
  }

  @Test
  void whatCannotBeReadIsSaid() {
    assertThat(execute("trace", "merge", folder.resolve("nowhere").toString())).isEqualTo(2);
    assertThat(err.toString())
        .contains("does not exist; expected a trace, or a folder with traces");
    assertThat(execute("trace", "merge", folder.toString())).isEqualTo(2);
    assertThat(err.toString()).contains("no traces in");
    assertThat(execute("report", folder.toString())).isEqualTo(2);
    assertThat(err.toString()).contains("holds no run: run.json cannot be read");
    assertThat(execute("report", folder.resolve("nowhere").toString())).isEqualTo(2);
    assertThat(err.toString()).contains("is not a folder");
  }
}
