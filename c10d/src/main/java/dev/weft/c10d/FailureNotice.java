package dev.weft.c10d;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.weft.c10d.store.Store;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * The first failure of a world, told to all of its ranks through their store: whoever fails (or
 * sees a process die) publishes it, the first to do so wins, and an error that follows on another
 * rank can name it. Immutable.
 *
 * @param rank the rank that failed
 * @param reason what happened to it, in a line
 * @param trace the top of the stack, a frame a line; empty if there is none
 */
public record FailureNotice(int rank, String reason, String trace) {
  /** The key of the notice in the store that the world's ranks share. */
  public static final String KEY = "weft/failure";

  private static final int MAX_REASON = 4096;
  private static final int MAX_FRAMES = 5;
  private static final ObjectMapper JSON = new ObjectMapper();

  /**
   * Makes a notice of an exception.
   *
   * @param rank the rank that it was thrown on
   * @param failure the exception
   * @return the notice
   */
  public static FailureNotice of(int rank, Throwable failure) {
    String frames =
        Arrays.stream(failure.getStackTrace())
            .limit(MAX_FRAMES)
            .map(frame -> "at " + frame)
            .collect(Collectors.joining("\n"));
    return new FailureNotice(rank, failure.toString(), frames);
  }

  /**
   * Stores this notice unless there is one.
   *
   * @param store the store of the world
   * @return the notice that is there now: this one, or an earlier one
   */
  public FailureNotice publish(Store store) {
    String text =
        JSON.createObjectNode()
            .put("rank", rank)
            .put("reason", reason.substring(0, Math.min(MAX_REASON, reason.length())))
            .put("trace", trace.substring(0, Math.min(MAX_REASON, trace.length())))
            .toString();
    return parse(store.compareSet(KEY, "", text));
  }

  /**
   * Looks for a notice without waiting.
   *
   * @param store the store of the world
   * @return the notice, if anything has failed
   */
  public static Optional<FailureNotice> read(Store store) {
    return store.check(List.of(KEY)) ? Optional.of(parse(store.getString(KEY))) : Optional.empty();
  }

  /**
   * Waits for a notice.
   *
   * @param store the store of the world
   * @param timeout how long at most
   * @return the notice
   * @throws StoreTimeoutException if nothing fails until then
   */
  public static FailureNotice await(Store store, Duration timeout) {
    store.waitFor(List.of(KEY), timeout);
    return parse(store.getString(KEY));
  }

  private static FailureNotice parse(String text) {
    try {
      JsonNode node = JSON.readTree(text);
      return new FailureNotice(
          node.path("rank").asInt(-1), node.path("reason").asText(), node.path("trace").asText());
    } catch (JsonProcessingException e) {
      throw new StoreException("key '" + KEY + "' holds no failure notice: " + text, e);
    }
  }
}
