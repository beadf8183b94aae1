package dev.weft.examples.trainer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.ShardingPicture;
import dev.weft.tensor.Tensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What a report needs to know of a run beside its losses: the file {@code run.json}.
 *
 * @param title of the page
 * @param subtitle of the page
 * @param settings the options
 * @param clip the bound of the gradient's norm
 * @param steps of the whole run
 * @param mesh sizes by dimension
 * @param placements of rank 0's parameters, those of one kind once
 * @param replicated operators that ran on whole tensors for want of a sharding rule
 */
record RunRecord(
    String title,
    String subtitle,
    Map<String, String> settings,
    double clip,
    long steps,
    Map<String, Integer> mesh,
    List<Placed> placements,
    List<String> replicated) {
  static final String FILE = "run.json";

  private static final ObjectMapper JSON = new ObjectMapper();

  /**
   * Parameters that are placed alike.
   *
   * @param names their paths
   * @param svg a drawing
   */
  record Placed(List<String> names, String shape, String placements, String svg) {}

  /** The kinds of distributed parameters: shape and placements. */
  static List<Placed> placements(Map<String, Tensor> parameters) {
    Map<String, List<String>> names = new LinkedHashMap<>();
    Map<String, Placed> kinds = new LinkedHashMap<>();
    parameters.forEach(
        (name, p) -> {
          if (p instanceof DTensor d) {
            String shape = Arrays.toString(d.shape());
            String key = shape + d.placements() + d.mesh();
            names.computeIfAbsent(key, k -> new ArrayList<>()).add(name);
            kinds.computeIfAbsent(
                key,
                k ->
                    new Placed(
                        List.of(),
                        shape,
                        d.placements().toString(),
                        ShardingPicture.svg(d.spec())));
          }
        });
    List<Placed> out = new ArrayList<>();
    kinds.forEach(
        (key, kind) ->
            out.add(
                new Placed(
                    names.getOrDefault(key, List.of()), kind.shape, kind.placements, kind.svg)));
    return out;
  }

  /** The operators that this process has run on whole tensors until now. */
  static List<String> replicatedUntilNow() {
    return DTensor.replicatedOperators().stream().sorted().toList();
  }

  void write(Path folder) {
    ObjectNode json = JSON.createObjectNode();
    json.put("title", title).put("subtitle", subtitle).put("clip", clip).put("steps", steps);
    ObjectNode options = json.putObject("settings");
    settings.forEach(options::put);
    ObjectNode sizes = json.putObject("mesh");
    mesh.forEach(sizes::put);
    ArrayNode kinds = json.putArray("placements");
    for (Placed p : placements) {
      ObjectNode kind = kinds.addObject();
      ArrayNode names = kind.putArray("names");
      p.names.forEach(names::add);
      kind.put("shape", p.shape).put("placements", p.placements).put("svg", p.svg);
    }
    ArrayNode whole = json.putArray("replicated");
    replicated.forEach(whole::add);
    Path file = folder.resolve(FILE);
    try {
      Files.writeString(file, json.toPrettyString());
    } catch (IOException e) {
      throw new UncheckedIOException("the run's record cannot be written to " + file + ": " + e, e);
    }
  }

  /**
   * Reads the record of a run.
   *
   * @throws IllegalArgumentException if it is not there, or something else
   */
  static RunRecord read(Path folder) {
    Path file = folder.resolve(FILE);
    JsonNode json;
    try {
      json = JSON.readTree(Files.readString(file));
    } catch (IOException e) {
      throw new IllegalArgumentException(
          "'" + folder + "' holds no run: " + FILE + " cannot be read: " + e.getMessage(), e);
    }
    Map<String, String> settings = new LinkedHashMap<>();
    json.path("settings")
        .properties()
        .forEach(e -> settings.put(e.getKey(), e.getValue().asText()));
    Map<String, Integer> mesh = new LinkedHashMap<>();
    json.path("mesh").properties().forEach(e -> mesh.put(e.getKey(), e.getValue().asInt()));
    List<Placed> placements = new ArrayList<>();
    for (JsonNode p : json.path("placements")) {
      placements.add(
          new Placed(
              texts(p.path("names")),
              p.path("shape").asText(),
              p.path("placements").asText(),
              p.path("svg").asText()));
    }
    return new RunRecord(
        json.path("title").asText(),
        json.path("subtitle").asText(),
        settings,
        json.path("clip").asDouble(),
        json.path("steps").asLong(),
        mesh,
        placements,
        texts(json.path("replicated")));
  }

  private static List<String> texts(JsonNode array) {
    List<String> out = new ArrayList<>();
    array.forEach(e -> out.add(e.asText()));
    return out;
  }
}
