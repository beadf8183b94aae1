package dev.weft.conformance;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.weft.c10d.debug.Analysis;
import dev.weft.c10d.debug.FlightRecorderAnalyzer;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.IntStream;

/** Gives the dump sets of {@code fr-cases.json} to the analyzer and compares the verdicts. */
final class FlightRecorderRunner implements CaseRunner {
  private static final ObjectMapper JSON = new ObjectMapper();

  @Override
  public Outcome run(JsonNode recorded) throws JsonProcessingException {
    SortedMap<Integer, JsonNode> dumps = new TreeMap<>();
    for (Map.Entry<String, JsonNode> e : recorded.get("dumps").properties()) {
      dumps.put(Integer.parseInt(e.getKey()), e.getValue());
    }
    boolean incomplete =
        recorded.has("flags")
            && Json.strings(recorded.get("flags")).contains("--allow-incomplete-ranks");
    JsonNode want = recorded.get("verdict");
    Analysis got;
    try {
      got = FlightRecorderAnalyzer.analyze(dumps, incomplete);
    } catch (IllegalArgumentException e) {
      Json.require(want.has("raises"), "refused with " + e.getMessage() + ", want " + want);
      return Outcome.PASSED;
    }
    // Read back, so that equal numbers are equal.
    JsonNode verdict = JSON.readTree(got.toJson().toString());
    if (verdict.equals(want)) {
      Json.require(
          got.isClean() == got.findings().isEmpty(),
          "clean is " + got.isClean() + " with findings " + got.findings());
      return Outcome.PASSED;
    }
    return better(recorded.get("name").asText(), dumps.size(), got, verdict, want);
  }

  /** Where PyTorch's analyzer is known to err, what must come out instead. */
  private static Outcome better(
      String name, int world, Analysis got, JsonNode verdict, JsonNode want) {
    JsonNode first = verdict.path("collectives").path(0);
    return switch (name) {
      case "_all_gather_base_numel" -> {
        boolean all = IntStream.range(1, world).allMatch(r -> isSizeMismatch(first, r));
        Json.require(all && !got.isClean(), "want wrong sizes on all but rank 0: " + verdict);
        yield Outcome.deviation("the sizes of all_gather_into_tensor are checked");
      }
      case "p2p_coalesced_exchange" -> {
        Json.require(got.isClean(), "want a clean exchange: " + got.findings());
        yield Outcome.deviation("a batch is matched message by message");
      }
      case "p2p_coalesced_swapped_sizes" -> {
        Json.require(
            !got.isClean() && got.findings().toString().contains("do not fit together"),
            "want wrong sizes: " + got.findings());
        yield Outcome.deviation("the order of sizes in a batch is checked");
      }
      case "p2p_matched", "p2p_coalesced_one_way" -> {
        Json.require(got.isClean() && world > 2, "want a clean message: " + verdict);
        yield Outcome.deviation("a message concerns its two ranks alone");
      }
      case "p2p_receiver_missing" -> {
        Json.requireEqual("missing ranks", "[1]", first.path("missing_ranks"));
        yield Outcome.deviation("a message concerns its two ranks alone");
      }
      case "p2p_size_differs", "p2p_both_send" -> {
        Json.require(isSizeMismatch(first, 1), "want a mismatch on rank 1: " + verdict);
        yield Outcome.deviation("a message concerns its two ranks alone");
      }
      case "p2p_coalesced_unmatched" -> {
        Json.require(!got.isClean(), "want an unmatched message: " + verdict);
        yield Outcome.deviation("a batch is matched message by message");
      }
      default -> Outcome.failed("got " + verdict + ", want " + want);
    };
  }

  private static boolean isSizeMismatch(JsonNode verdict, int rank) {
    JsonNode type = verdict.path("mismatches").path(String.valueOf(rank)).path("type");
    return type.asText().equals("SIZE_OR_SYNTAX_MISMATCH");
  }
}
