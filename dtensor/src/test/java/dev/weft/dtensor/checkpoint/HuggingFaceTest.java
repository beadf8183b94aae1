package dev.weft.dtensor.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.DTensorFactories;
import dev.weft.dtensor.Placements;
import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.DType;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.Casts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Models go out to and come in from the layout that Hugging Face uses. */
class HuggingFaceTest {
  @TempDir private Path folder;

  private static Tensor counting(long... shape) {
    float[] values = new float[(int) Shapes.numel(shape)];
    for (int i = 0; i < values.length; i++) {
      values[i] = i + 0.5f;
    }
    return Tensor.of(values, shape);
  }

  private void export(long maxFileBytes) {
    LocalWorld.run(
        2,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 2);
          Map<String, Tensor> state = new TreeMap<>();
          state.put(
              "wte.weight",
              DTensor.distributeTensor(counting(5, 3), mesh, List.of(Placements.shard(0)), null));
          state.put(
              "wo.weight",
              DTensor.distributeTensor(counting(4, 4), mesh, List.of(Placements.shard(1)), null));
          state.put("bias", counting(3));
          HuggingFace.save(folder, state, maxFileBytes);
        });
  }

  private List<String> files() throws IOException {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.map(p -> p.getFileName().toString()).sorted().toList();
    }
  }

  @Test
  void aSmallModelIsOneFile() throws IOException {
    export(1 << 20);
    assertThat(files()).containsExactly("model.safetensors");
    try (Safetensors file = Safetensors.open(folder.resolve("model.safetensors"))) {
      assertThat(file.entries().keySet()).containsExactly("bias", "wo.weight", "wte.weight");
      assertThat(file.read("wte.weight").toFloatArray()).isEqualTo(counting(5, 3).toFloatArray());
    }
    assertThat(
            Files.readString(
                folder.resolve("model.safetensors"), java.nio.charset.StandardCharsets.ISO_8859_1))
        .contains("\"__metadata__\":{\"format\":\"pt\"}");
  }

  @Test
  void aLargeOneIsSeveralWithAnIndexAndAnyMeshReadsItsParts() throws IOException {
    export(70);
    assertThat(files())
        .containsExactly(
            "model-00001-of-00003.safetensors",
            "model-00002-of-00003.safetensors",
            "model-00003-of-00003.safetensors",
            "model.safetensors.index.json");
    assertThat(Files.readString(folder.resolve("model.safetensors.index.json")))
        .contains("\"total_size\" : 136")
        .contains("\"wo.weight\" : \"model-00002-of-00003.safetensors\"");
    assertThat(HuggingFace.entries(folder).get("wo.weight").shape()).containsExactly(4, 4);
    LocalWorld.run(
        3,
        rank -> {
          DeviceMesh mesh = DeviceMesh.initDeviceMesh("cpu", 3);
          Map<String, Tensor> state = new TreeMap<>();
          // Other dtypes are converted.
          state.put(
              "wte.weight",
              DTensorFactories.zeros(mesh, List.of(Placements.shard(1)), DType.BFLOAT16, 5, 3));
          state.put(
              "wo.weight",
              DTensorFactories.zeros(mesh, List.of(Placements.shard(0)), DType.FLOAT64, 4, 4));
          state.put("bias", Tensors.empty(DType.FLOAT32, 3));
          HuggingFace.load(folder, state, true);
          state.forEach(
              (name, t) ->
                  assertThat(t.toFloatArray())
                      .as(name)
                      .isEqualTo(Casts.to(counting(t.shape()), t.dtype()).toFloatArray()));
        });
  }

  @Test
  void exportingAgainAsOneFileRemovesTheIndex() throws IOException {
    export(70);
    export(1 << 20);
    assertThat(files()).doesNotContain("model.safetensors.index.json");
    Tensor bias = Tensors.empty(DType.FLOAT32, 3);
    HuggingFace.load(folder, Map.of("bias", bias), false);
    assertThat(bias.toFloatArray()).containsExactly(0.5f, 1.5f, 2.5f);
  }

  private void refuses(Map<String, Tensor> targets, boolean strict, String... parts) {
    assertThatThrownBy(() -> HuggingFace.load(folder, targets, strict))
        .isInstanceOf(CheckpointException.class)
        .satisfies(e -> assertThat(e.getMessage()).contains(parts));
  }

  @Test
  void whatIsMissingExtraDamagedOrOfAnotherShapeIsNamed() throws IOException {
    refuses(Map.of(), true, "neither", "model.safetensors");
    export(70);
    Map<String, Tensor> bias = Map.of("bias", Tensors.empty(DType.FLOAT32, 3));
    refuses(bias, true, "wo.weight", "wte.weight", "besides");
    refuses(Map.of("nothing", counting(1)), true, "lacks [nothing]");
    refuses(Map.of("bias", counting(4)), false, "bias", "float32[3]");
    Path third = folder.resolve("model-00003-of-00003.safetensors");
    byte[] whole = Files.readAllBytes(third);
    Files.write(third, java.util.Arrays.copyOf(whole, whole.length - 4));
    refuses(Map.of("wte.weight", counting(5, 3)), false, "model-00003", "wte.weight", "truncated");
    Files.delete(third);
    refuses(Map.of("wte.weight", counting(5, 3)), false, "model-00003");
    Path index = folder.resolve("model.safetensors.index.json");
    Files.writeString(index, "{\"weight_map\": {\"bias\": \"../elsewhere\"}}");
    refuses(bias, false, "'bias'", "../elsewhere");
    Files.writeString(index, "{\"weight_map\": {\"bias\": \"model-00002-of-00003.safetensors\"}}");
    refuses(bias, false, "model-00002", "no tensor 'bias'");
    Files.writeString(index, "{");
    refuses(bias, false, "index.json is damaged");
  }
}
