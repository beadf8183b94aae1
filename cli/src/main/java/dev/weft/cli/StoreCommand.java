package dev.weft.cli;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.weft.c10d.store.TcpStore;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code weft store}: hosts a store for Weft's and PyTorch's ranks until it is interrupted. */
@Command(
    name = "store",
    description = {
      "Serves a store until interrupted. Ranks of Weft and of PyTorch can meet at it.",
      "It listens on loopback only, unless --host or WEFT_STORE_BIND names another address."
    },
    mixinStandardHelpOptions = true,
    sortOptions = false)
final class StoreCommand implements Callable<Integer> {
  @Option(
      names = "--host",
      paramLabel = "HOST",
      defaultValue = "127.0.0.1",
      description = "the address by which others reach it (default: ${DEFAULT-VALUE})")
  private String host = "";

  @Option(
      names = "--port",
      paramLabel = "PORT",
      defaultValue = "29500",
      description = "the port, 0 for a free one (default: ${DEFAULT-VALUE})")
  private int port;

  @Option(names = "--world", paramLabel = "N", description = "say when N ranks have joined")
  private @Nullable Integer world;

  @Option(
      names = "--timeout",
      paramLabel = "SECONDS",
      defaultValue = "300",
      description = "how long they may take to join (default: ${DEFAULT-VALUE})")
  private int timeoutSeconds;

  @Spec private @Nullable CommandSpec spec;

  @Override
  public Integer call() throws InterruptedException {
    PrintWriter out =
        spec == null ? new PrintWriter(System.out, true, UTF_8) : spec.commandLine().getOut();
    try (var store = TcpStore.at(host, port).server(true).waitForWorkers(false).open()) {
      out.println("weft store: listening on " + host + ":" + store.port());
      out.flush();
      if (world != null) {
        store.awaitWorkers(world, Duration.ofSeconds(timeoutSeconds));
        out.println("weft store: " + world + " ranks have joined");
        out.flush();
      }
      new CountDownLatch(1).await(); // until the process is interrupted
      return 0;
    }
  }
}
