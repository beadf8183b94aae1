package dev.weft.c10d.nccl;

import dev.weft.c10d.Distributed;
import dev.weft.c10d.DistributedException;
import dev.weft.c10d.InitOptions;
import dev.weft.c10d.World;
import dev.weft.tensor.Device;
import dev.weft.tensor.cuda.Cuda;
import java.time.Duration;

/** What a rank of {@link RankProcesses} runs in a JVM of its own. */
public final class NcclRank {
  private NcclRank() {}

  /** Argument: what to do. */
  public static void main(String[] args) {
    String what = args[0];
    InitOptions options =
        InitOptions.DEFAULT
            .withBackend(what.startsWith("only-") ? "nccl" : "cpu:host,cuda:nccl")
            .withTimeout(Duration.ofSeconds(what.contains("brief") ? 5 : 60));
    Cuda.setDevice(Integer.parseInt(System.getenv("LOCAL_RANK")) % Cuda.deviceCount());
    if (what.contains("bound")) {
      options = options.withDeviceId(Device.cuda(Cuda.currentDevice()));
    }
    try (World world = Distributed.init(options)) {
      say("joined " + world.rank() + " of " + world.size());
      RankPrograms.run(what, world.group());
    } catch (DistributedException e) {
      say("failed: " + e.getClass().getSimpleName() + ": " + e.getMessage());
      System.exit(3);
    }
    say("done");
  }

  static synchronized void say(String text) {
    System.out.println(text);
    System.out.flush();
  }
}
