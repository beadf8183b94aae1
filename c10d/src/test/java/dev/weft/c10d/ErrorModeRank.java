package dev.weft.c10d;

import dev.weft.tensor.Tensor;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Rank 0 of {@link ErrorHandlingTest}: a call that nobody awaits becomes overdue. */
public final class ErrorModeRank {
  private ErrorModeRank() {}

  /** Argument: the URL where the ranks meet. */
  public static void main(String[] args) throws Exception {
    InitOptions options =
        InitOptions.DEFAULT
            .withInitMethod(args[0])
            .withRank(0, 2)
            .withTimeout(Duration.ofSeconds(60));
    World world = Distributed.init(options);
    ProcessGroup other = Distributed.newGroup(0, 1);
    Work forgotten =
        world
            .group()
            .recv(
                Tensor.of(new float[1]),
                1,
                0,
                CollectiveOptions.ASYNC.withTimeout(Duration.ofMillis(500)));
    // Not awaited: looked at.
    var end =
        forgotten.completion().whenComplete((done, e) -> say("the call ended: " + (e != null)));
    say("launched");
    try {
      end.get(9, TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      say("the call is under way");
    } catch (java.util.concurrent.ExecutionException e) {
      say("the call failed: " + e.getCause());
    }
    Thread.sleep(1_000); // a process that is to end does so meanwhile
    try {
      Work unused = other.isend(Tensor.of(new float[1]), 1, 5);
      say("the other group works");
    } catch (DistributedException e) {
      say("the other group is aborted: " + e.getMessage());
    }
    Runtime.getRuntime().halt(0);
  }

  private static synchronized void say(String text) {
    System.out.println(text);
    System.out.flush();
  }
}
