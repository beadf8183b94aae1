package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.World;
import dev.weft.c10d.elastic.LaunchConfig;
import dev.weft.c10d.elastic.LocalLauncher;
import dev.weft.tensor.Device;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.cuda.Cuda;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Runs the recorded collectives through NCCL: a process a rank, which may share a GPU. Each rank
 * grades what it got by what was recorded of it, and ends with code 1 when something differs.
 *
 * <p>Arguments: {@code --ranks N FILE}. Cases that the backend refuses with a clear error are not
 * applicable: bitwise reductions, reductions of int16, receives from any rank, tags that reorder.
 */
public final class NcclCollectives {
  private NcclCollectives() {}

  /** Starts the ranks, or is one. */
  public static void main(String[] args) throws IOException {
    if (args.length == 3 && args[0].equals("--ranks")) {
      int ranks = Integer.parseInt(args[1]);
      System.exit(
          LocalLauncher.run(
              LaunchConfig.of(NcclCollectives.class.getName(), ranks)
                  .arguments(List.of(args[2]))
                  .classPath(System.getProperty("java.class.path"))
                  .jvmArguments(List.of("-Xmx1g", "-Dorg.bytedeco.javacpp.maxphysicalbytes=0"))
                  .shareGpus(ranks > Cuda.deviceCount())
                  .build()));
    }
    if (args.length != 1) {
      throw new IllegalArgumentException("expected --ranks N FILE");
    }
    int failed;
    try (World world =
        Distributed.init(
            InitOptions.DEFAULT
                .withBackend("cpu:host,cuda:nccl")
                .withTimeout(Duration.ofSeconds(60)))) {
      Device device = Device.cuda(world.rank() % Cuda.deviceCount());
      Cuda.setDevice(device.index());
      RecordedTensors.useDevice(device);
      failed = run(world, Path.of(args[0]));
    }
    System.exit(failed == 0 ? 0 : 1);
  }

  private static int run(World world, Path file) throws IOException {
    Map<Outcome.Kind, Integer> counts = new EnumMap<>(Outcome.Kind.class);
    for (JsonNode c : Json.read(file).get("worlds").get(String.valueOf(world.size()))) {
      Outcome outcome = runCase(c, world.rank());
      int unused = counts.merge(outcome.kind(), 1, Integer::sum);
      if (outcome.kind() == Outcome.Kind.FAILED) {
        System.out.println(c.get("name").asText() + ": " + outcome.detail());
      }
    }
    System.out.println("rank " + world.rank() + " of " + world.size() + ": " + counts);
    return counts.getOrDefault(Outcome.Kind.FAILED, 0);
  }

  private static Outcome runCase(JsonNode c, int rank) {
    String call = c.get("call").asText();
    if (ObjectCalls.knows(call) || SparseCalls.isSparse(c) || refused(c)) {
      return Outcome.notApplicable("not a call of NCCL");
    }
    roundAsNcclDoes(c);
    try (TensorScope scope = TensorScope.open()) {
      Outcome outcome = CollectivesRunner.ofRank(c, rank);
      if (outcome.detail().contains(DistributedException.class.getName())) {
        // After a failure of the group every other case would fail, too.
        throw new IllegalStateException(c.get("name").asText() + ": " + outcome.detail());
      }
      return outcome;
    }
  }

  /** NCCL multiplies by 1/n in the tensors' own dtype before it adds up, and drops subnormals. */
  private static void roundAsNcclDoes(JsonNode c) {
    String name = c.get("name").asText();
    if (name.endsWith("/AVG/float16") || name.endsWith("/AVG/bfloat16")) {
      double unit = name.endsWith("/bfloat16") ? 0x1p-8 : 0x1p-11;
      ((ObjectNode) c).put("tol", 2 * unit);
    }
  }

  private static boolean refused(JsonNode c) {
    String name = c.get("name").asText();
    String op = c.get("params").path("op").asText("");
    return name.contains("complex")
        || List.of("BAND", "BOR", "BXOR").contains(op)
        || (name.contains("int16") && name.contains("reduce"))
        || name.contains("any_source")
        || name.contains("tags_select");
  }
}
