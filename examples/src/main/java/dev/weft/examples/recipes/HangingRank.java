package dev.weft.examples.recipes;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.c10d.debug.DumpFiles;
import dev.weft.c10d.debug.FlightRecorderAnalyzer;
import dev.weft.c10d.debug.FlightRecorderConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;

/** A rank takes another branch; the flight recorders tell where. */
public final class HangingRank {
  private static final CountDownLatch NEVER = new CountDownLatch(1);

  private HangingRank() {}

  /** Runs it on two threads. */
  public static void main(String[] args) throws IOException {
    Path dumps = Files.createTempDirectory("dumps");
    var recorder =
        new FlightRecorderConfig(100, true, false, true, dumps.resolve("rank").toString());
    try {
      LocalWorld.of(2)
          .timeout(Duration.ofMillis(500))
          .flightRecorder(recorder) // processes: WEFT_FR_DUMP_TEMP_FILE
          .run(HangingRank::train);
    } catch (OperationTimeoutException e) {
      System.out.println(e.getMessage());
    }
    // As `weft fr DIR` does:
    var analysis = FlightRecorderAnalyzer.analyze(DumpFiles.read(dumps, "rank"), true);
    analysis.findings().stream().limit(2).forEach(System.out::println);
  }

  private static void train(int rank) throws InterruptedException {
    try {
      for (int step = 0; step < 4; step++) {
        if (step == 2 && rank == 1) {
          NEVER.await(); // for data, a lock, a debugger
          Distributed.dumpFlightRecorder(); // processes: echo > NAME.pipe, as docs/failures.md says
          return;
        }
        Distributed.barrier().await();
      }
    } finally {
      NEVER.countDown(); // so that this program ends
    }
  }
}
