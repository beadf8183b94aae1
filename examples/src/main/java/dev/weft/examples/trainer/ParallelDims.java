package dev.weft.examples.trainer;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.mesh.DeviceMesh;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * How many ranks each kind of parallelism has. The mesh has these dimensions in this order, so that
 * neighbours share tensors.
 *
 * @param dp replicas of the model
 * @param fsdp ranks over which the parameters of a replica are fully sharded
 * @param pp ranks of the pipeline
 * @param tp tensor-parallel ranks
 */
public record ParallelDims(int dp, int fsdp, int pp, int tp) {
  private static final List<String> NAMES = List.of("dp", "fsdp", "pp", "tp");
  private static final Pattern PART = Pattern.compile("\\s*(\\w+)=(\\*|\\d{1,6})\\s*");
  private static final int REST = 0;

  /** Checks the sizes. */
  public ParallelDims {
    if (dp < 1 || fsdp < 1 || pp < 1 || tp < 1) {
      throw new IllegalArgumentException(
          "--mesh dp=%d,fsdp=%d,pp=%d,tp=%d; expected sizes of at least 1"
              .formatted(dp, fsdp, pp, tp));
    }
  }

  /**
   * Reads {@code dp=2,pp=2,tp=2}; a name left out counts as 1, and one may be {@code *}: the ranks
   * that the others leave.
   *
   * @param world the ranks there are, or 0 where the mesh decides
   * @throws IllegalArgumentException for another text, or if the sizes do not make up the world
   */
  public static ParallelDims parse(String text, int world) {
    Map<String, Integer> sizes = new LinkedHashMap<>();
    for (String part : text.split(",", -1)) {
      Matcher m = PART.matcher(part);
      if (!m.matches() || !NAMES.contains(m.group(1)) || sizes.containsKey(m.group(1))) {
        throw new IllegalArgumentException(
            "--mesh '%s': '%s' is not understood; expected sizes of some of %s, each once, such as"
                    .formatted(text, part, NAMES)
                + " dp=2,pp=2,tp=2");
      }
      int size = m.group(2).equals("*") ? REST : Integer.parseInt(m.group(2));
      if (size == 0 && !m.group(2).equals("*")) {
        throw new IllegalArgumentException("--mesh '" + text + "'; expected sizes of at least 1");
      }
      sizes.put(m.group(1), size);
    }
    long product = 1;
    int rests = 0;
    for (int size : sizes.values()) {
      product *= size == REST ? 1 : size;
      rests += size == REST ? 1 : 0;
      if (product > Integer.MAX_VALUE) {
        throw new IllegalArgumentException(
            "--mesh '" + text + "' takes more ranks than there can be; expected below 2^31");
      }
    }
    if (rests > 1 || (rests == 1 && world == 0)) {
      throw new IllegalArgumentException(
          "--mesh '"
              + text
              + (rests > 1
                  ? "' has more than one *; expected one at most"
                  : "' has a *; expected numbers, since the mesh says how many ranks to start"));
    }
    boolean fits = rests == 1 ? world % product == 0 : world == 0 || product == world;
    if (!fits) {
      throw new IllegalArgumentException(
          "--mesh '%s' takes %s%d ranks, and the world has %d; expected them to be equal"
              .formatted(text, rests == 1 ? "a multiple of " : "", product, world));
    }
    int rest = rests == 1 ? (int) (world / product) : 1;
    sizes.replaceAll((name, size) -> size == REST ? rest : size);
    return new ParallelDims(
        sizes.getOrDefault("dp", 1),
        sizes.getOrDefault("fsdp", 1),
        sizes.getOrDefault("pp", 1),
        sizes.getOrDefault("tp", 1));
  }

  /** The number of ranks. */
  public int ranks() {
    return dp * fsdp * pp * tp;
  }

  /** Among how many ranks the rows of a batch are dealt out. */
  public int replicas() {
    return dp * fsdp;
  }

  /** The mesh of the calling rank, with all four dimensions. */
  DeviceMesh mesh(String deviceType) {
    return initDeviceMesh(
        deviceType, dim("dp", dp), dim("fsdp", fsdp), dim("pp", pp), dim("tp", tp));
  }

  /** Such as {@code dp=2,pp=2}; sizes of 1 are left out. */
  /** Sizes by name, outermost first; those of 1 are left out, unless all are. */
  Map<String, Integer> sizes() {
    int[] sizes = {dp, fsdp, pp, tp};
    Map<String, Integer> out = new LinkedHashMap<>();
    for (int i = 0; i < sizes.length; i++) {
      if (sizes[i] > 1) {
        out.put(NAMES.get(i), sizes[i]);
      }
    }
    return out.isEmpty() ? Map.of(NAMES.get(0), 1) : out;
  }

  @Override
  public String toString() {
    int[] sizes = {dp, fsdp, pp, tp};
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < sizes.length; i++) {
      if (sizes[i] > 1) {
        text.append(text.length() == 0 ? "" : ",").append(NAMES.get(i)).append('=');
        text.append(sizes[i]);
      }
    }
    return text.length() == 0 ? "dp=1" : text.toString();
  }
}
