package dev.weft.dtensor.checkpoint;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.weft.c10d.Distributed;
import dev.weft.dtensor.DTensor;
import dev.weft.tensor.DType;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Models in the layout of Hugging Face: {@code model.safetensors}, or several such files and {@code
 * model.safetensors.index.json}, which says in which file each tensor is. Tensors lie whole in the
 * files. Called by the thread that acts for a rank.
 */
public final class HuggingFace {
  private static final String SINGLE = "model.safetensors";
  private static final String INDEX = "model.safetensors.index.json";

  private HuggingFace() {}

  /**
   * Writes tensors; distributed ones are gathered, one file's worth at a time. Called by all ranks
   * of the world alike; the first writes, all return when it is done.
   *
   * @param tensors by the names that they shall have, none with an outstanding reduction
   * @param maxFileBytes where a new file begins; a larger tensor gets a file of its own
   * @throws CheckpointException on every rank where the first could not write
   */
  public static void save(Path folder, Map<String, Tensor> tensors, long maxFileBytes) {
    if (maxFileBytes < 1) {
      throw new IllegalArgumentException(
          "maxFileBytes is " + maxFileBytes + "; expected 1 or more");
    }
    Map<String, Tensor> sorted = new TreeMap<>(tensors);
    List<List<String>> files = filled(sorted, maxFileBytes);
    String error = "";
    Map<String, String> where = new TreeMap<>();
    for (int i = 0; i < files.size(); i++) {
      String name =
          files.size() == 1
              ? SINGLE
              : String.format(Locale.ROOT, "model-%05d-of-%05d.safetensors", i + 1, files.size());
      try (TensorScope scope = TensorScope.open()) {
        Map<String, StridedTensor> whole = new LinkedHashMap<>();
        for (String t : files.get(i)) {
          where.put(t, name);
          whole.put(t, onHost(Objects.requireNonNull(sorted.get(t))));
        }
        if (Distributed.rank() == 0 && error.isEmpty()) {
          error = written(folder, name, whole);
        }
      }
    }
    if (Distributed.rank() == 0 && error.isEmpty()) {
      error = finished(folder, sorted, files.size() == 1 ? Map.of() : where);
    }
    byte[] first = Exchange.all(Distributed.world(), error.getBytes(StandardCharsets.UTF_8)).get(0);
    if (first.length > 0) {
      throw new CheckpointException(new String(first, StandardCharsets.UTF_8));
    }
  }

  private static List<List<String>> filled(Map<String, Tensor> tensors, long maxFileBytes) {
    List<List<String>> files = new ArrayList<>(List.of(new ArrayList<>()));
    long used = 0;
    for (Map.Entry<String, Tensor> e : tensors.entrySet()) {
      long bytes = bytes(e.getValue());
      List<String> last = files.get(files.size() - 1);
      if (!last.isEmpty() && used + bytes > maxFileBytes) {
        last = new ArrayList<>();
        files.add(last);
        used = 0;
      }
      last.add(e.getKey());
      used += bytes;
    }
    return files;
  }

  private static long bytes(Tensor t) {
    return t.numel() * t.dtype().byteSize();
  }

  private static StridedTensor onHost(Tensor t) {
    StridedTensor whole =
        t instanceof DTensor d ? Autograd.noGrad(d::plain) : (StridedTensor) t.detach();
    if (whole.device().isCpu()) {
      return whole;
    }
    StridedTensor copy = Tensors.empty(whole.dtype(), whole.shape());
    Regions.copy(whole, copy);
    return copy;
  }

  private static String written(Path folder, String name, Map<String, StridedTensor> tensors) {
    try {
      Files.createDirectories(folder);
      Path part = folder.resolve(name + ".partial");
      Map<String, Long> unused = Safetensors.write(part, tensors, Map.of("format", "pt"));
      Files.move(
          part,
          folder.resolve(name),
          StandardCopyOption.ATOMIC_MOVE,
          StandardCopyOption.REPLACE_EXISTING);
      return "";
    } catch (IOException | CheckpointException e) {
      return "cannot write " + folder.resolve(name) + ": " + e.getMessage();
    }
  }

  /** Writes the index last, or removes an old one that would hide a single file. */
  private static String finished(
      Path folder, Map<String, Tensor> tensors, Map<String, String> where) {
    Path index = folder.resolve(INDEX);
    try {
      if (where.isEmpty()) {
        Files.deleteIfExists(index);
        return "";
      }
      ObjectNode root = Checkpoint.MAPPER.createObjectNode();
      long total = tensors.values().stream().mapToLong(HuggingFace::bytes).sum();
      root.putObject("metadata").put("total_size", total);
      ObjectNode map = root.putObject("weight_map");
      where.forEach(map::put);
      Path part = folder.resolve(INDEX + ".partial");
      Files.write(part, Checkpoint.MAPPER.writeValueAsBytes(root));
      Files.move(part, index, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
      return "";
    } catch (IOException e) {
      return "cannot write " + index + ": " + e;
    }
  }

  /** The tensors of a folder, or of one file, by name. */
  public static Map<String, Safetensors.Entry> entries(Path model) {
    try (TensorReader reader = new TensorReader(root(model))) {
      Map<String, Safetensors.Entry> out = new TreeMap<>();
      files(model).forEach((name, file) -> out.put(name, reader.file(file).get(name)));
      return out;
    }
  }

  /**
   * Fills tensors in place; each rank reads only the bytes of its parts. Values are converted to
   * the targets' dtypes. Needs no communication.
   *
   * @param model a folder, or one file
   * @param targets of any kind, of the shapes in the files, by the names in the files
   * @param strict whether the names must be exactly those of the files
   * @throws CheckpointException if something is missing, damaged or of another shape
   */
  public static void load(Path model, Map<String, Tensor> targets, boolean strict) {
    Map<String, String> files = files(model);
    Set<String> missing = new TreeSet<>(targets.keySet());
    missing.removeAll(files.keySet());
    Set<String> extra = new TreeSet<>(files.keySet());
    extra.removeAll(targets.keySet());
    if (strict && (!missing.isEmpty() || !extra.isEmpty())) {
      throw new CheckpointException(
          model + " does not fit: it lacks " + missing + " and has " + extra + " besides");
    }
    Autograd.noGrad(
        () -> {
          try (TensorReader reader = new TensorReader(root(model))) {
            Map<String, CheckpointIndex.Entry> found = new LinkedHashMap<>();
            targets.forEach(
                (name, t) -> {
                  String file = files.get(name);
                  if (file != null) {
                    found.put(name, entry(model, name, file, reader.file(file).get(name), t));
                  }
                });
            // All is checked before anything is changed.
            targets.forEach(
                (name, t) -> {
                  CheckpointIndex.Entry e = found.get(name);
                  if (e != null) {
                    reader.fill(name, e, t);
                  }
                });
          }
        });
  }

  private static CheckpointIndex.Entry entry(
      Path model, String name, String file, Safetensors.Entry stored, Tensor target) {
    if (!Arrays.equals(stored.shape(), target.shape())) {
      throw new CheckpointException(
          model
              + ": tensor '"
              + name
              + "' of "
              + file
              + " is "
              + stored.dtype()
              + Arrays.toString(stored.shape())
              + "; the target is "
              + target.describe());
    }
    if (target instanceof DTensor d && d.spec().hasPartial()) {
      throw new IllegalArgumentException(
          "load: tensor '" + name + "' has an outstanding reduction: " + d.describe());
    }
    DType dtype = stored.dtype();
    return new CheckpointIndex.Entry(
        dtype.label(),
        stored.shape(),
        List.of(
            new CheckpointIndex.Piece(
                file, null, new long[stored.shape().length], stored.shape(), null)));
  }

  private static Path root(Path model) {
    Path parent = model.toAbsolutePath().getParent();
    return Files.isRegularFile(model) && parent != null ? parent : model;
  }

  /** The file of each tensor. */
  private static Map<String, String> files(Path model) {
    Path index = model.resolve(INDEX);
    Map<String, String> out = new TreeMap<>();
    if (Files.isRegularFile(index)) {
      JsonNode map;
      try {
        map = Checkpoint.MAPPER.readTree(index.toFile()).path("weight_map");
      } catch (IOException e) {
        throw new CheckpointException(index + " is damaged: " + e.getMessage(), e);
      }
      if (!map.isObject()) {
        throw new CheckpointException(index + " is damaged: it has no weight_map");
      }
      for (Map.Entry<String, JsonNode> e : map.properties()) {
        String file = e.getValue().asText();
        if (file.isEmpty() || file.contains("/") || file.contains("\\") || file.equals("..")) {
          throw new CheckpointException(
              index + " is damaged: tensor '" + e.getKey() + "' is said to be in '" + file + "'");
        }
        out.put(e.getKey(), file);
      }
      return out;
    }
    Path single = Files.isRegularFile(model) ? model : model.resolve(SINGLE);
    if (!Files.isRegularFile(single)) {
      throw new CheckpointException(
          model + " is no model: it has neither " + SINGLE + " nor " + INDEX);
    }
    try (Safetensors file = Safetensors.open(single)) {
      for (String name : file.entries().keySet()) {
        out.put(name, String.valueOf(single.getFileName()));
      }
    }
    return out;
  }
}
