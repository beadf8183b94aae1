package dev.weft.examples.guide;

import static dev.weft.dtensor.tp.Parallelize.parallelizeModule;
import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.checkpoint.Checkpoint;
import dev.weft.dtensor.checkpoint.HuggingFace;
import dev.weft.dtensor.checkpoint.PendingSave;
import dev.weft.examples.guide.TensorParallelGuide.Mlp;
import dev.weft.optim.AdamW;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** The programs of the chapter on checkpoints. */
final class CheckpointsGuide {
  private CheckpointsGuide() {}

  private static Mlp onTwoDimensions() {
    var mesh = initDeviceMesh("cpu", dim("dp", 2), dim("tp", 2));
    return parallelizeModule(new Mlp(), mesh.get("tp"), Map.of("up", colwise(), "down", rowwise()));
  }

  private static Mlp onThreeRanks() {
    return parallelizeModule(
        new Mlp(),
        initDeviceMesh("cpu", dim("tp", 3)),
        Map.of("up", colwise().localOutput(false), "down", rowwise()));
  }

  @Ranks(0)
  static void resharding() throws IOException {
    Path folder = Files.createTempDirectory("checkpoints");
    LocalWorld.run(
        4,
        rank -> {
          var model = onTwoDimensions();
          var optimizer = AdamW.over(model.parameters()).build();
          Checkpoint.save(folder, 100, model, optimizer, Map.of("epoch", 2.0));
        });
    LocalWorld.run(
        3, // another mesh, other placements
        rank -> {
          var model = onThreeRanks();
          var optimizer = AdamW.over(model.parameters()).build();
          Checkpoint last = Checkpoint.latest(folder).orElseThrow();
          Map<String, Double> scalars = last.load(model, optimizer);
          if (rank == 0) {
            System.out.println("step " + last.step() + " " + scalars);
          }
        });
  }

  @Ranks(0)
  static void inTheBackground() throws IOException {
    Path folder = Files.createTempDirectory("checkpoints");
    LocalWorld.run(
        4,
        rank -> {
          var model = onTwoDimensions();
          PendingSave save = Checkpoint.saveAsync(folder, 1, model, null, Map.of());
          // ... train on: what is written are copies ...
          Checkpoint done = save.await(); // all ranks commit
          if (rank == 0) {
            done.verify();
            System.out.println(done.names());
          }
        });
  }

  @Ranks(0)
  static void models() throws IOException {
    Path folder = Files.createTempDirectory("model");
    LocalWorld.run(4, rank -> HuggingFace.save(folder, onTwoDimensions().namedParameters(), 1024));
    try (var files = Files.list(folder)) {
      System.out.println(files.map(p -> p.getFileName().toString()).sorted().toList());
    }
    LocalWorld.run(3, rank -> HuggingFace.load(folder, onThreeRanks().namedParameters(), true));
  }
}
