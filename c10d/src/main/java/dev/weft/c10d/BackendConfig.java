package dev.weft.c10d;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Which backend serves which device type: {@code host} or {@code cpu:host,cuda:nccl}. Immutable.
 */
final class BackendConfig {
  private final Map<String, String> byType;

  private BackendConfig(Map<String, String> byType) {
    this.byType = byType;
  }

  /**
   * Reads a backend string.
   *
   * @throws IllegalArgumentException if it is malformed or names an unknown backend
   */
  static BackendConfig parse(String text) {
    Map<String, String> byType = new LinkedHashMap<>();
    String trimmed = text.trim().toLowerCase(Locale.ROOT);
    if (!trimmed.contains(":")) {
      BackendProvider provider = BackendRegistry.find(trimmed);
      for (String type : provider.deviceTypes()) {
        byType.put(type, provider.name());
      }
      return new BackendConfig(byType);
    }
    for (String part : trimmed.split(",", -1)) {
      String[] pair = part.trim().split(":", -1);
      if (pair.length != 2 || pair[0].isBlank() || pair[1].isBlank()) {
        throw new IllegalArgumentException(
            "backend '" + text + "' is malformed; expected a name or TYPE:NAME,TYPE:NAME");
      }
      BackendProvider provider = BackendRegistry.find(pair[1].trim());
      String type = pair[0].trim();
      if (!provider.deviceTypes().contains(type)) {
        throw new IllegalArgumentException(
            "backend '"
                + text
                + "': "
                + provider.name()
                + " does not serve device type '"
                + type
                + "'; it serves "
                + provider.deviceTypes());
      }
      if (byType.put(type, provider.name()) != null) {
        throw new IllegalArgumentException(
            "backend '" + text + "' names device type '" + type + "' twice");
      }
    }
    return new BackendConfig(byType);
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
