package dev.weft.tensor;

/**
 * Where a tensor's data lies: {@code cpu}, {@code cuda:N} or {@code meta} (shape only, no data).
 * Immutable.
 *
 * @param type {@code cpu}, {@code cuda} or {@code meta}
 * @param index the ordinal among devices of the type; 0 for cpu and meta
 */
public record Device(String type, int index) {
  /** The host. */
  public static final Device CPU = new Device("cpu", 0);

  /** No memory at all: operators compute shapes and dtypes only. */
  public static final Device META = new Device("meta", 0);

  /** Checks the type and the index. */
  public Device {
    if (!type.equals("cpu") && !type.equals("cuda") && !type.equals("meta")) {
      throw new IllegalArgumentException(
          "device type '" + type + "' is unknown; expected cpu, cuda or meta");
    }
    if (index < 0 || (index > 0 && !type.equals("cuda"))) {
      throw new IllegalArgumentException("device index " + index + " is not valid for " + type);
    }
  }

  /** The CUDA device of an ordinal. */
  public static Device cuda(int index) {
    return new Device("cuda", index);
  }

  /**
   * Reads {@code cpu}, {@code meta}, {@code cuda} or {@code cuda:N}.
   *
   * @throws IllegalArgumentException if the text is none of these
   */
  public static Device parse(String text) {
    int colon = text.indexOf(':');
    String type = colon < 0 ? text : text.substring(0, colon);
    int index = 0;
    if (colon >= 0) {
      try {
        index = Integer.parseInt(text.substring(colon + 1));
      } catch (NumberFormatException e) {
        throw new IllegalArgumentException(
            "device '" + text + "' is not valid; expected cpu, meta, cuda or cuda:N", e);
      }
    }
    return switch (type) {
      case "cpu" -> index == 0 ? CPU : new Device(type, index);
      case "meta" -> index == 0 ? META : new Device(type, index);
      default -> new Device(type, index);
    };
  }

  /** True for the host. */
  public boolean isCpu() {
    return type.equals("cpu");
  }

  /** True for a CUDA device. */
  public boolean isCuda() {
    return type.equals("cuda");
  }

  /** True where there is no data. */
  public boolean isMeta() {
    return type.equals("meta");
  }

  @Override
  public String toString() {
    return isCuda() ? type + ":" + index : type;
  }
}
