package dev.weft.conformance;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.MismatchException;
import dev.weft.c10d.OperationTimeoutException;
import dev.weft.tensor.TensorScope;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Runs the invalid uses of {@code errors.json} and compares what each rank gives or throws. */
final class ErrorsRunner implements CaseRunner {
  static final Duration TIMEOUT = Duration.ofMillis(500);
  private static final long SLACK_MILLIS = 5_000;
  private static final ObjectMapper JSON = new ObjectMapper();

  /** Cases that a typed signature rules out, and what does. */
  private static final Map<String, String> NOT_APPLICABLE =
      Map.ofEntries(
          Map.entry("all_reduce/not_a_tensor", "the argument is a Tensor"),
          Map.entry("all_reduce/list_of_tensors", "the argument is a Tensor"),
          Map.entry("all_gather/not_a_list", "the argument is a List"),
          Map.entry("batch_isend_irecv/wrong_function", "a P2POp is a send or a receive"),
          Map.entry("all_reduce/op_of_wrong_type", "the argument is a ReduceOp"),
          Map.entry("all_reduce/complex_MAX", "there is no complex dtype"),
          Map.entry("broadcast_object_list/not_a_list", "the argument is a List"),
          Map.entry("scatter_object_list/output_empty", "the object is the result"),
          Map.entry("barrier/device_ids_on_gloo", "a barrier takes no devices"),
          Map.entry("barrier/device_ids_type", "a barrier takes no devices"),
          Map.entry("new_group/on_foreign_group_object", "the argument is a ProcessGroup"),
          Map.entry("init/timeout_not_timedelta", "the argument is a Duration"));

  /** Refusals that Python has where Weft's are about a state, and so an IllegalStateException. */
  private static final Set<String> ABOUT_STATE =
      Set.of(
          "init/twice",
          "destroy/then_all_reduce",
          "destroy/then_get_rank",
          "destroy/then_get_world_size",
          "uninitialized/all_reduce",
          "uninitialized/new_group",
          "uninitialized/get_rank");

  /**
   * Cases where Weft does better on purpose: the refusal or the result that every rank must get.
   */
  private static final Map<String, Deviation> BETTER =
      Map.of(
          "all_to_all_single/indivisible",
          refused("rows that do not divide by the ranks are refused, whatever their bytes"),
          "send/dst_too_large",
          refused("a destination outside the group is refused at once"),
          "send/dst_negative",
          refused("a destination outside the group is refused, and the process lives"),
          "all_reduce/PREMUL_SUM",
          new Deviation("the pre-multiplied sum works on CPU", world -> 2.0 * world),
          "all_reduce/int16",
          new Deviation("int16 is supported", world -> (double) world),
          "destroy/twice",
          new Deviation("destroying may be repeated", world -> "quiet"));

  /** What a rank gave or threw, and how long that took. */
  record Seen(@Nullable Object value, @Nullable Throwable error, long millis) {}

  /** The result of a better case by world size; a null rule asks for a refused argument. */
  private record Deviation(String reason, @Nullable Result result) {}

  /** A result. */
  private interface Result {
    Object of(int world);
  }

  private static Deviation refused(String reason) {
    return new Deviation(reason, null);
  }

  @Override
  public Outcome run(JsonNode recorded) {
    String name = recorded.get("name").asText();
    String reason = NOT_APPLICABLE.get(name);
    if (reason != null) {
      return Outcome.notApplicable(reason);
    }
    int world = recorded.get("world").asInt();
    List<Seen> seen;
    try (TensorScope scope = TensorScope.open()) {
      seen =
          InitCalls.knows(name)
              ? List.of(attempt(() -> InitCalls.perform(name)))
              : Ranks.run(
                      LocalWorld.of(world).timeout(TIMEOUT),
                      world,
                      rank -> attempt(() -> ErrorCalls.perform(name, rank, world)))
                  .stream()
                  .map(Ranks.Result::get)
                  .toList();
    }
    if (name.equals("all_reduce/shape_mismatch_between_ranks")) {
      // The record varies by rank and timing; what counts is that every rank is told.
      return seen.stream().allMatch(s -> s.error() instanceof MismatchException)
          ? Outcome.PASSED
          : Outcome.failed("got " + seen + ", want a mismatch on every rank");
    }
    Deviation better = BETTER.get(name);
    if (better != null && isBetter(better, world, seen)) {
      return Outcome.deviation(better.reason());
    }
    for (int r = 0; r < seen.size(); r++) {
      JsonNode want =
          recorded.has("every_rank") ? recorded.get("every_rank") : recorded.get("by_rank").get(r);
      Outcome outcome = grade(name, "rank " + r, want, seen.get(r));
      if (outcome.kind() != Outcome.Kind.PASSED) {
        return outcome;
      }
    }
    ErrorCalls.checkMessages(name, world, seen);
    return Outcome.PASSED;
  }

  private static boolean isBetter(Deviation better, int world, List<Seen> seen) {
    Result result = better.result();
    return seen.stream()
        .allMatch(
            s ->
                result == null
                    ? s.error() instanceof IllegalArgumentException
                    : result.of(world).equals(s.value()));
  }

  private static Outcome grade(String name, String rank, JsonNode want, Seen got) {
    if (!want.has("raises")) {
      Json.require(got.error() == null, rank + ": threw " + got.error() + ", want " + want);
      Json.requireEqual(rank, want.get("returns"), JSON.valueToTree(got.value()));
      return Outcome.PASSED;
    }
    Throwable error = got.error();
    if (error == null) {
      return name.equals("init/nccl_without_gpu_build")
          ? Outcome.notApplicable("NCCL is there")
          : Outcome.failed(rank + ": got " + got.value() + ", want " + want);
    }
    boolean fits =
        ABOUT_STATE.contains(name)
            ? error instanceof IllegalStateException
            : Errors.fits(want.get("raises").asText(), error);
    Json.require(fits, rank + ": threw " + error + ", want " + want);
    if (error instanceof OperationTimeoutException) {
      long least = TIMEOUT.toMillis();
      Json.require(
          got.millis() >= least - 1 && got.millis() <= least + SLACK_MILLIS,
          rank + ": timed out after " + got.millis() + " ms, want about " + least);
    }
    return Outcome.PASSED;
  }

  /** What a rank does. */
  interface Call {
    @Nullable Object run();
  }

  private static Seen attempt(Call call) {
    long start = System.nanoTime();
    try {
      Object value = call.run();
      return new Seen(value, null, millisSince(start));
    } catch (RuntimeException e) {
      return new Seen(null, e, millisSince(start));
    }
  }

  private static long millisSince(long start) {
    return (System.nanoTime() - start) / 1_000_000;
  }
}
