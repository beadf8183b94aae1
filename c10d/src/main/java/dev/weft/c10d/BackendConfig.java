package dev.weft.c10d;

import dev.weft.tensor.cuda.Cuda;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Which backend serves which device type: {@code host} or {@code cpu:host,cuda:nccl}. Immutable.
 *
 * <p>A name alone stands for all device types that the backend serves. {@code nccl} may be named
 * wherever the program runs; where it is not there, using it says so.
 */
public final class BackendConfig {
  private static final Map<String, List<String>> OPTIONAL = Map.of("nccl", List.of("cuda"));

  /** PyTorch's name for the default: host, and nccl beside it where there is a GPU. */
  static final String UNDEFINED = "undefined";

  private final Map<String, String> byType;

  private BackendConfig(Map<String, String> byType) {
    this.byType = byType;
  }

  /**
   * Reads a backend string.
   *
   * @throws IllegalArgumentException if it is malformed or names an unknown backend
   */
  public static BackendConfig parse(String text) {
    Map<String, String> byType = new LinkedHashMap<>();
    String trimmed = text.trim().toLowerCase(Locale.ROOT);
    if (!trimmed.contains(":") && !trimmed.contains(",")) {
      if (trimmed.equals(UNDEFINED) && Cuda.isAvailable()) {
        return parse("cpu:host,cuda:nccl");
      }
      String name = trimmed.equals(UNDEFINED) ? "host" : trimmed;
      for (String type : deviceTypes(name)) {
        byType.put(type, canonical(name));
      }
      return new BackendConfig(byType);
    }
    for (String part : trimmed.split(",", -1)) {
      String[] pair = part.trim().split(":", -1);
      if (pair.length != 2 || pair[0].isBlank() || pair[1].isBlank()) {
        throw new IllegalArgumentException(
            "backend '" + text + "' is malformed; expected a name or TYPE:NAME,TYPE:NAME");
      }
      String name = pair[1].trim();
      String type = pair[0].trim();
      if (!deviceTypes(name).contains(type)) {
        throw new IllegalArgumentException(
            "backend '"
                + text
                + "': "
                + name
                + " does not serve device type '"
                + type
                + "'; it serves "
                + deviceTypes(name));
      }
      if (byType.put(type, canonical(name)) != null) {
        throw new IllegalArgumentException(
            "backend '" + text + "' names device type '" + type + "' twice");
      }
    }
    return new BackendConfig(byType);
  }

  private static List<String> deviceTypes(String name) {
    List<String> optional = OPTIONAL.get(name);
    return optional != null && !BackendRegistry.names().contains(name)
        ? optional
        : List.copyOf(BackendRegistry.find(name).deviceTypes());
  }

  private static String canonical(String name) {
    return OPTIONAL.containsKey(name) ? name : BackendRegistry.find(name).name();
  }

  /** The names of backends by device type, in the order given. */
  public Map<String, String> byDeviceType() {
    return Collections.unmodifiableMap(byType);
  }

  BackendProvider provider(String deviceType, String group) {
    String name = byType.get(deviceType);
    if (name == null) {
      throw new IllegalArgumentException(
          "group '"
              + group
              + "' has no backend for device type '"
              + deviceType
              + "'; it was made"
              + " with backend '"
              + this
              + "'");
    }
    return BackendRegistry.available(name);
  }

  List<String> typesOf(BackendProvider provider) {
    List<String> types = new ArrayList<>();
    byType.forEach(
        (type, name) -> {
          if (name.equals(provider.name())) {
            types.add(type);
          }
        });
    return types;
  }

  String controlType() {
    return byType.containsKey("cpu") ? "cpu" : byType.keySet().iterator().next();
  }

  @Override
  public String toString() {
    List<String> parts = new ArrayList<>();
    byType.forEach((type, name) -> parts.add(type + ":" + name));
    return String.join(",", parts);
  }
}
