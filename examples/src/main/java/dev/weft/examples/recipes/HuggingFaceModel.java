package dev.weft.examples.recipes;

import static dev.weft.dtensor.tp.Parallelize.parallelizeModule;
import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.checkpoint.HuggingFace;
import dev.weft.nn.Linear;
import dev.weft.nn.Sequential;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/** Reads and writes models as Hugging Face's libraries do, each rank only its parts. */
public final class HuggingFaceModel {
  private HuggingFaceModel() {}

  /** Writes a model on one rank, and reads it on two. */
  public static void main(String[] args) throws IOException {
    Path folder = Files.createTempDirectory("model");
    LocalWorld.run(1, rank -> HuggingFace.save(folder, named(mlp(1)), 300)); // bytes of a file
    HuggingFace.entries(folder)
        .forEach(
            (name, entry) ->
                System.out.println(name + " " + entry.dtype() + Arrays.toString(entry.shape())));
    try (var files = Files.list(folder)) {
      System.out.println(files.map(file -> file.getFileName().toString()).sorted().toList());
    }
    LocalWorld.run(
        2,
        rank -> {
          var mesh = initDeviceMesh("cpu", dim("tp", 2));
          var model = parallelizeModule(mlp(2), mesh, Map.of("0", colwise(), "1", rowwise()));
          HuggingFace.load(folder, named(model), true); // true: no name may be missing or left over
          Tensor x = Tensor.of(new float[] {1, 2, 3, 4}, 1, 4);
          double error = model.call(x).sub(mlp(1).call(x)).pow(2).max().item();
          if (rank == 0) {
            System.out.println("the same model: " + (error < 1e-10));
          }
        });
  }

  private static Sequential mlp(long seed) {
    Generator generator = new Generator(seed);
    return new Sequential(new Linear(4, 16, false, generator), new Linear(16, 4, false, generator));
  }

  /** Names in the file need not be those of the program. */
  private static Map<String, Tensor> named(Sequential mlp) {
    return new TreeMap<>(
        Map.of(
            "model.mlp.up_proj.weight", mlp.parameter("0.weight"),
            "model.mlp.down_proj.weight", mlp.parameter("1.weight")));
  }
}
