package dev.weft.dtensor.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.DTensorFactories;
import dev.weft.dtensor.Placement;
import dev.weft.dtensor.Placements;
import dev.weft.dtensor.StridedShard;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CheckpointTest {
  @TempDir private Path root;

  private static Tensor counting(long... shape) {
    float[] values = new float[(int) Shapes.numel(shape)];
    for (int i = 0; i < values.length; i++) {
      values[i] = i + 0.5f;
    }
    return Tensor.of(values, shape);
  }

  private static List<Placement> randomPlacements(Random random, int meshDims, int ndim) {
    List<Placement> out = new ArrayList<>();
    for (int m = 0; m < meshDims; m++) {
      out.add(
          random.nextInt(3) == 0 ? Placements.replicate() : Placements.shard(random.nextInt(ndim)));
    }
    return out;
  }

  /** What one mesh saved, any other loads: uneven and empty parts and nested cuts included. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  void anyMeshLoadsWhatAnyMeshSaved(int seed) {
    int[][] meshes = {{1}, {2}, {3}, {4}, {2, 2}, {2, 3}, {2, 1, 2}};
    long[][] shapes = {{7}, {5, 3}, {4, 4, 2}, {1, 9}, {2, 3, 2, 2}, {0, 3}};
    Random random = new Random(seed);
    int[] from = meshes[random.nextInt(meshes.length)];
    int[] to = meshes[random.nextInt(meshes.length)];
    Map<String, long[]> names = new TreeMap<>();
    for (int i = 0; i < shapes.length; i++) {
      names.put("t" + i, shapes[i]);
    }
    LocalWorld.run(
        size(from),
        rank -> {
          Random placing = new Random(seed * 31L);
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", from);
          Map<String, Tensor> state = new TreeMap<>();
          names.forEach(
              (name, shape) ->
                  state.put(
                      name,
                      DTensor.distributeTensor(
                          counting(shape),
                          mesh,
                          randomPlacements(placing, from.length, shape.length),
                          null)));
          state.put("plain", counting(3));
          Checkpoint saved = Checkpoint.save(root, seed, state, Map.of("step", 1.0 * seed));
          assertThat(saved.step()).isEqualTo(seed);
        });
    LocalWorld.run(
        size(to),
        rank -> {
          Random placing = new Random(seed * 77L);
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", to);
          Map<String, Tensor> state = new TreeMap<>();
          names.forEach(
              (name, shape) ->
                  state.put(
                      name,
                      DTensorFactories.zeros(
                          mesh,
                          randomPlacements(placing, to.length, shape.length),
                          DType.FLOAT32,
                          shape)));
          state.put("plain", Tensors.empty(DType.FLOAT32, 3));
          Checkpoint checkpoint = Checkpoint.latest(root).orElseThrow();
          checkpoint.load(state, true);
          assertThat(checkpoint.scalars()).containsEntry("step", 1.0 * seed);
          state.forEach(
              (name, t) ->
                  assertThat(t.toFloatArray())
                      .as(name)
                      .containsExactly(counting(t.shape()).toFloatArray()));
        });
    Checkpoint.latest(root).orElseThrow().verify();
  }

  private static int size(int[] mesh) {
    int n = 1;
    for (int s : mesh) {
      n *= s;
    }
    return n;
  }

  /** P55: a save that was not finished does no harm, and is cleared away by the next. */
  @Test
  void aSaveThatNeverEndsLeavesTheLastOne() throws IOException {
    LocalWorld.run(
        2,
        rank -> {
          Checkpoint unused = Checkpoint.save(root, 1, Map.of("x", counting(4)), Map.of());
        });
    Path partial = Files.createDirectory(root.resolve("step-00000002.partial"));
    Files.writeString(partial.resolve("rank-0.safetensors"), "half");
    assertThat(Checkpoint.latest(root).orElseThrow().step()).isEqualTo(1);
    LocalWorld.run(
        2,
        rank -> {
          Checkpoint unused = Checkpoint.save(root, 2, Map.of("x", counting(4)), Map.of());
        });
    assertThat(Checkpoint.latest(root).orElseThrow().step()).isEqualTo(2);
    try (Stream<Path> entries = Files.list(root)) {
      assertThat(entries.filter(p -> p.toString().endsWith(".partial"))).isEmpty();
    }
  }

  /** P55: saving a step again leaves the old one until the new one is whole. */
  @Test
  void aCrashWhileAStepIsSavedAgainLeavesTheOldOne() throws IOException {
    LocalWorld.run(
        2,
        rank -> {
          Checkpoint unused = Checkpoint.save(root, 7, Map.of("old", counting(4)), Map.of());
          PendingSave pending = Checkpoint.saveAsync(root, 7, Map.of("new", counting(4)), Map.of());
          assertThat(Checkpoint.latest(root).orElseThrow().names()).containsExactly("old");
          unused = pending.await();
          assertThat(Checkpoint.latest(root).orElseThrow().names()).containsExactly("new");
        });
    try (Stream<Path> entries = Files.list(root)) {
      assertThat(entries.map(p -> p.getFileName().toString())).containsExactly("step-00000007.1");
    }
  }

  /** P55: a damaged checkpoint is passed over, and the one before it counts. */
  @Test
  void theNewestIntactOneCounts() throws IOException {
    assertThat(Checkpoint.latestIntact(root, e -> {})).isEmpty();
    LocalWorld.run(
        1,
        rank -> {
          for (int step = 1; step <= 4; step++) {
            Checkpoint unused = Checkpoint.save(root, step, Map.of("w", counting(step)), Map.of());
          }
          Checkpoint.keepNewest(root, 3);
        });
    assertThat(root.resolve("step-00000001")).doesNotExist();
    Path data = root.resolve("step-00000004").resolve("rank-0.safetensors");
    byte[] whole = Files.readAllBytes(data);
    whole[whole.length - 1] ^= 1;
    Files.write(data, whole);
    Files.delete(root.resolve("step-00000003").resolve("index.json"));
    List<String> passed = new ArrayList<>();
    Checkpoint found = Checkpoint.latestIntact(root, e -> passed.add(e.getMessage())).orElseThrow();
    assertThat(found.step()).isEqualTo(2);
    assertThat(passed).hasSize(2);
    assertThat(passed.get(0)).contains("rank-0.safetensors").contains("'w'").contains("checksum");
    assertThat(passed.get(1)).contains("step-00000003").contains("index.json");
  }

  /** A strided placement gives a rank positions that do not follow each other. */
  @Test
  void stridedPartsAreSavedBlockByBlock() {
    List<Placement> strided = List.of(new StridedShard(0, 2), Placements.shard(0));
    LocalWorld.run(
        4,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2, 2);
          Checkpoint unused =
              Checkpoint.save(
                  root,
                  1,
                  Map.of("x", DTensor.distributeTensor(counting(7, 3), mesh, strided, null)),
                  Map.of());
          Tensor whole = Tensors.empty(DType.FLOAT32, 7, 3);
          Checkpoint.latest(root).orElseThrow().load(Map.of("x", whole), true);
          assertThat(whole.toFloatArray()).isEqualTo(counting(7, 3).toFloatArray());
          DTensor again = DTensorFactories.zeros(mesh, strided, DType.FLOAT32, 7, 3);
          Checkpoint.latest(root).orElseThrow().load(Map.of("x", again), true);
          assertThat(again.toFloatArray()).isEqualTo(counting(7, 3).toFloatArray());
        });
    Checkpoint.latest(root).orElseThrow().verify();
  }

  /** Further blocks have names of their own in the file, whatever the tensors are called. */
  @Test
  void blocksAreNotMistakenForTensors() {
    List<Placement> strided = List.of(new StridedShard(0, 2), Placements.shard(0));
    LocalWorld.run(
        4,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2, 2);
          Map<String, Tensor> tensors = new HashMap<>();
          for (String name : List.of("x", "x#1", "x#1#")) {
            Tensor t = counting(8, 3).add(name.length());
            tensors.put(name, DTensor.distributeTensor(t, mesh, strided, null));
          }
          Checkpoint unused = Checkpoint.save(root, 1, tensors, Map.of());
          for (String name : tensors.keySet()) {
            Tensor whole = Tensors.empty(DType.FLOAT32, 8, 3);
            Checkpoint.latest(root).orElseThrow().load(Map.of(name, whole), false);
            assertThat(whole.toFloatArray())
                .isEqualTo(counting(8, 3).add(name.length()).toFloatArray());
          }
        });
    Checkpoint.latest(root).orElseThrow().verify();
  }

  @Test
  void savingAgainReplaces() {
    LocalWorld.run(
        2,
        rank -> {
          Checkpoint unused = Checkpoint.save(root, 5, Map.of("x", counting(4)), Map.of());
          unused = Checkpoint.save(root, 5, Map.of("y", counting(2)), Map.of());
        });
    assertThat(Checkpoint.latest(root).orElseThrow().names()).containsExactly("y");
  }

  @Test
  void damageIsNamed() throws IOException {
    LocalWorld.run(
        1,
        rank -> {
          Checkpoint unused =
              Checkpoint.save(root, 1, Map.of("a", counting(4), "b", counting(2)), Map.of());
        });
    Path folder = Checkpoint.latest(root).orElseThrow().folder();
    Path file = folder.resolve("rank-0.safetensors");
    byte[] good = Files.readAllBytes(file);

    byte[] flipped = good.clone();
    flipped[flipped.length - 1] ^= 1;
    Files.write(file, flipped);
    assertThatThrownBy(() -> Checkpoint.open(folder).verify())
        .isInstanceOf(CheckpointException.class)
        .hasMessageContaining("rank-0.safetensors")
        .hasMessageContaining("'b'");
    assertThatThrownBy(() -> Checkpoint.open(folder).read("b")).hasMessageContaining("checksum");

    Files.write(file, java.util.Arrays.copyOf(good, good.length - 3));
    assertThatThrownBy(() -> Checkpoint.open(folder))
        .hasMessageContaining("rank-0.safetensors")
        .hasMessageContaining(String.valueOf(good.length));
    Files.delete(file);
    assertThatThrownBy(() -> Checkpoint.open(folder)).hasMessageContaining("is missing");
    Files.write(file, new byte[] {1, 2, 3});
    assertThatThrownBy(() -> Safetensors.open(file)).hasMessageContaining("3 bytes");
    Files.writeString(folder.resolve("index.json"), "{");
    assertThatThrownBy(() -> Checkpoint.open(folder)).hasMessageContaining("index.json");
  }

  @Test
  void whatDoesNotFitIsListed() {
    LocalWorld.run(
        1,
        rank -> {
          Checkpoint saved =
              Checkpoint.save(root, 1, Map.of("a", counting(4), "b", counting(2)), Map.of());
          assertThatThrownBy(() -> saved.load(Map.of("a", counting(4), "c", counting(1)), true))
              .hasMessageContaining("lacks [c]")
              .hasMessageContaining("has [b]");
          Tensor a = Tensors.empty(DType.FLOAT32, 4);
          saved.load(Map.of("a", a, "c", counting(1)), false);
          assertThat(a.toFloatArray()).containsExactly(0.5f, 1.5f, 2.5f, 3.5f);
          assertThatThrownBy(() -> saved.load(Map.of("a", counting(5)), false))
              .hasMessageContaining("'a'")
              .hasMessageContaining("[4]")
              .hasMessageContaining("[5]");
          assertThatThrownBy(() -> saved.load(Map.of("a", Tensor.of(new double[4], 4)), false))
              .hasMessageContaining("float32")
              .hasMessageContaining("float64");
        });
  }

  /** An asynchronous save holds the values of the moment it was asked for. */
  @Test
  void anAsynchronousSaveIsASnapshot() {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          DTensor t =
              DTensor.distributeTensor(counting(6), mesh, List.of(Placements.shard(0)), null);
          PendingSave save = Checkpoint.saveAsync(root, 1, Map.of("t", t), Map.of());
          Tensor unused = dev.weft.tensor.op.InPlace.zero(t);
          Checkpoint saved = save.await();
          assertThat(saved.read("t").toFloatArray()).containsExactly(counting(6).toFloatArray());
        });
  }

  /** The stages of a pipeline have other tensors, some plain, some cut over the stage's ranks. */
  @Test
  void ranksWithDifferentTensorsSaveTogether() {
    LocalWorld.run(
        4,
        rank -> {
          DeviceMesh mesh =
              DeviceMesh.initDeviceMesh("cpu", DeviceMesh.dim("pp", 2), DeviceMesh.dim("tp", 2));
          String stage = "stage" + mesh.coordinate(0);
          Map<String, Tensor> state = new TreeMap<>();
          state.put(
              stage + ".cut",
              DTensor.distributeTensor(
                  counting(5, 3), mesh.get("tp"), List.of(Placements.shard(0)), null));
          state.put(stage + ".plain", counting(4));
          state.put("common", counting(2));
          if (rank == 3) {
            state.put("last.empty", counting(0, 2));
          }
          Checkpoint saved = Checkpoint.save(root, 7, state, Map.of());
          assertThat(saved.names())
              .containsExactlyInAnyOrder(
                  "common",
                  "last.empty",
                  "stage0.cut",
                  "stage0.plain",
                  "stage1.cut",
                  "stage1.plain");
        });
    Checkpoint saved = Checkpoint.open(root.resolve("step-00000007"));
    saved.verify();
    for (String name : List.of("stage0.cut", "stage1.cut")) {
      assertThat(saved.read(name).toFloatArray()).isEqualTo(counting(5, 3).toFloatArray());
    }
    assertThat(saved.read("stage1.plain").toFloatArray()).isEqualTo(counting(4).toFloatArray());
    LocalWorld.run(
        3,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 3);
          DTensor cut =
              DTensorFactories.zeros(mesh, List.of(Placements.shard(1)), DType.FLOAT32, 5, 3);
          saved.load(Map.of("stage1.cut", cut), false);
          assertThat(cut.fullTensor().toFloatArray()).isEqualTo(counting(5, 3).toFloatArray());
        });
  }

  @Test
  void oneNameWithTwoShapesIsRefusedOnAllRanks() {
    LocalWorld.run(
        3,
        rank -> {
          Map<String, Tensor> state = new TreeMap<>();
          state.put("own" + rank, counting(1));
          state.put("same", counting(rank == 2 ? 3 : 2));
          assertThatThrownBy(() -> Checkpoint.save(root, 1, state, Map.of()))
              .isInstanceOf(CheckpointException.class)
              .hasMessageContaining(
                  "'same' is float32[3] on rank 2 and float32[2] on a lower rank");
        });
  }
}
