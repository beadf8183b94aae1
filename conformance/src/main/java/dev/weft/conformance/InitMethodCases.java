package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.Distributed;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.ReduceOp;
import dev.weft.c10d.World;
import dev.weft.tensor.Tensor;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The recorded ways to join a world of one, one after the other in this process. */
final class InitMethodCases {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);
  private static final List<String> REFUSED_HERE = List.of("cpu:gloo,cuda:gloo", "cuda:gloo");

  private InitMethodCases() {}

  static Outcome run(JsonNode recorded) throws IOException {
    String name = recorded.get("name").asText();
    Path folder = Files.createTempDirectory("weft-init");
    try (World world = Distributed.init(options(name, environment(recorded), folder))) {
      Tensor t = Tensor.of(new float[] {3});
      world.group().allReduce(t, ReduceOp.SUM).await();
      Json.requireEqual("sum over one rank", 3.0, t.item());
      if (recorded.has("raises")) {
        Json.require(name.startsWith("backend="), "got a world, want " + recorded);
        return Outcome.deviation("the backend is there, and works");
      }
      JsonNode want = recorded.get("returns");
      Json.requireEqual("rank", want.get("rank"), world.rank());
      Json.requireEqual("world size", want.get("world_size"), world.size());
      boolean cpu = want.get("config").asText().contains("cpu:gloo");
      String config = world.group().backendConfig();
      Json.require(cpu == config.contains("cpu:host"), "got backend " + config + ", want " + want);
      return Outcome.PASSED;
    } catch (RuntimeException e) {
      if (recorded.has("raises") && Errors.fits(recorded.get("raises").asText(), e)) {
        return Outcome.PASSED;
      }
      boolean refused =
          REFUSED_HERE.contains(backend(name))
              && String.valueOf(e.getMessage()).contains("does not serve device type 'cuda'");
      Json.require(refused, "threw " + e + ", want " + recorded);
      return Outcome.deviation("the host backend serves CPU tensors alone, and says so");
    } finally {
      for (String file : List.of("a", "b", "c")) {
        Files.deleteIfExists(folder.resolve(file));
      }
      Files.deleteIfExists(folder);
    }
  }

  private static Map<String, String> environment(JsonNode recorded) throws IOException {
    Map<String, String> out = new HashMap<>();
    for (Map.Entry<String, JsonNode> e : recorded.get("env").properties()) {
      String value = e.getValue().asText();
      out.put(e.getKey(), value.equals("<free port>") ? String.valueOf(freePort()) : value);
    }
    return out;
  }

  private static InitOptions options(String name, Map<String, String> environment, Path folder)
      throws IOException {
    InitOptions base = InitOptions.DEFAULT.withEnvironment(environment).withTimeout(TIMEOUT);
    if (name.startsWith("backend=")) {
      return name.equals("backend=None") ? base : base.withBackend(backend(name));
    }
    String tcp = "tcp://127.0.0.1:" + freePort();
    return switch (name) {
      case "no init_method given means env://" -> base;
      case "env:// rank and world size as arguments", "env:// arguments win over variables" ->
          base.withInitMethod("env://").withRank(0, 1);
      case "env://?rank=0&world_size=1" -> base.withInitMethod(name);
      case "tcp:// with arguments" -> base.withInitMethod(tcp).withRank(0, 1);
      case "tcp:// with query" -> base.withInitMethod(tcp + "?rank=0&world_size=1");
      case "tcp:// without port" -> base.withInitMethod("tcp://127.0.0.1").withRank(0, 1);
      case "tcp:// without rank" -> base.withInitMethod(tcp).withRank(-1, 1);
      case "tcp:// without world size" -> base.withInitMethod(tcp).withRank(0, -1);
      case "file:// with arguments" ->
          base.withInitMethod("file://" + folder.resolve("a")).withRank(0, 1);
      case "file:// without rank" ->
          base.withInitMethod("file://" + folder.resolve("b")).withRank(-1, 1);
      case "file:// without world size" ->
          base.withInitMethod("file://" + folder.resolve("c")).withRank(0, -1);
      case "file:// without path" -> base.withInitMethod("file://").withRank(0, 1);
      case "unknown scheme" -> base.withInitMethod("carrier://x").withRank(0, 1);
      case "init_method empty string" -> base.withInitMethod("");
      default -> base.withInitMethod("env://");
    };
  }

  /** What stands in {@code backend='...'}; an empty text where the name is of something else. */
  private static String backend(String name) {
    return name.startsWith("backend='") ? name.substring(9, name.length() - 1) : "";
  }

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }
}
