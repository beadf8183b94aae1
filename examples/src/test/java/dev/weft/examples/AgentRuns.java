package dev.weft.examples;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.elastic.ElasticAgent;
import dev.weft.c10d.elastic.ElasticOptions;
import dev.weft.c10d.elastic.LaunchConfig;
import java.io.ByteArrayOutputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** Runs of agents and their ranks, which are processes, whose output a test looks at. */
public final class AgentRuns {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();

  /** What agents and ranks have said so far. */
  public String said() {
    return out.toString(UTF_8);
  }

  /** The configuration of a program that small ranks run, which say here what they say. */
  public LaunchConfig.Builder config(Class<?> program, int ranks, List<String> arguments) {
    return LaunchConfig.of(program.getName(), ranks)
        .arguments(arguments)
        .jvmArguments(List.of("-Xmx256m"))
        .environment(Map.of("OMP_NUM_THREADS", "1"))
        .noticePeriod(Duration.ofSeconds(1))
        .output(out, out);
  }

  /** Starts an agent on a thread of its own; its exit code. */
  public CompletableFuture<Integer> start(LaunchConfig config, ElasticOptions options) {
    return CompletableFuture.supplyAsync(
        () -> ElasticAgent.run(config, options), work -> new Thread(work, "agent").start());
  }

  /** Looks again and again until something is so. */
  public void await(Duration limit, BooleanSupplier condition) throws InterruptedException {
    long end = System.nanoTime() + limit.toNanos();
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as(said()).isLessThan(end);
      Thread.sleep(2);
    }
  }

  /** Kills one of the ranks as {@code kill -9} does. */
  public void killOne() {
    ProcessHandle victim =
        ProcessHandle.current()
            .children()
            .filter(ProcessHandle::isAlive)
            .findAny()
            .orElseThrow(() -> new AssertionError("no rank is running:\n" + said()));
    assertThat(victim.destroyForcibly()).isTrue();
  }

  /** Expects that an agent ends well in time. */
  public void assertEndsWell(CompletableFuture<Integer> agent, Duration limit) throws Exception {
    int code = agent.get(limit.toSeconds(), TimeUnit.SECONDS);
    assertThat(code).as("what the run said:\n" + said()).isZero();
  }
}
