package dev.weft.c10d.host;

import dev.weft.c10d.MismatchException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Whether the calls of all ranks of a group fit together. A pure function of all signatures, so
 * every rank comes to the same verdict in the same words.
 */
final class Agreement {
  private Agreement() {}

  /** Throws the mismatch, if there is one. */
  static void check(String group, long sequence, int[] globalRanks, Signature[] calls) {
    List<String> differing = differing(calls);
    if (!differing.isEmpty()) {
      throw new MismatchException(
          head(group, sequence)
              + byCall(globalRanks, calls)
              + "; the calls differ in "
              + String.join(", ", differing));
    }
    String sizes = sizes(globalRanks, calls);
    if (sizes != null) {
      throw new MismatchException(head(group, sequence) + calls[0].operation() + ": " + sizes);
    }
  }

  /** Whether the calls fit. */
  static boolean fit(Signature[] calls) {
    int[] ranks = IntStream.range(0, calls.length).toArray();
    return differing(calls).isEmpty() && sizes(ranks, calls) == null;
  }

  private static String head(String group, long sequence) {
    return "the ranks of group " + group + " do not agree in collective " + sequence + ": ";
  }

  private static List<String> differing(Signature[] calls) {
    Signature first = calls[0];
    boolean operation = false;
    boolean dtype = false;
    boolean reduceOp = false;
    boolean root = false;
    boolean shape = false;
    for (Signature s : calls) {
      operation |= !s.operation().equals(first.operation());
      dtype |= s.dtype() != first.dtype();
      reduceOp |= !s.reduceOp().equals(first.reduceOp());
      root |= s.root() != first.root();
      shape |= !Arrays.equals(s.shape(), first.shape());
    }
    List<String> names = new ArrayList<>();
    if (operation) {
      names.add("operation");
      return names;
    }
    add(names, dtype, "dtype");
    add(names, reduceOp, "reduce op");
    add(names, root, "root");
    add(names, shape, "shape");
    return names;
  }

  private static void add(List<String> names, boolean differs, String name) {
    if (differs) {
      names.add(name);
    }
  }

  /** Who calls what: ranks with the same call together. */
  private static String byCall(int[] globalRanks, Signature[] calls) {
    Map<String, List<Integer>> ranks = new LinkedHashMap<>();
    for (int r = 0; r < calls.length; r++) {
      ranks
          .computeIfAbsent(calls[r].describe(globalRanks), k -> new ArrayList<>())
          .add(globalRanks[r]);
    }
    List<String> parts = new ArrayList<>();
    ranks.forEach(
        (call, who) ->
            parts.add(
                who.size() == 1
                    ? "rank " + who.get(0) + " calls " + call
                    : "ranks " + who + " call " + call));
    return String.join("; ", parts);
  }

  /** The first pair whose sizes do not fit, in words. */
  private static @Nullable String sizes(int[] globalRanks, Signature[] calls) {
    for (int from = 0; from < calls.length; from++) {
      for (int to = 0; to < calls.length; to++) {
        if (calls[from].sent() == null || calls[to].received() == null) {
          continue;
        }
        long sent = calls[from].sentTo(to);
        long expected = calls[to].receivedFrom(from);
        if (sent != expected) {
          return "rank "
              + globalRanks[from]
              + " sends "
              + sent
              + " elements of "
              + Objects.requireNonNull(calls[from].dtype())
              + " to rank "
              + globalRanks[to]
              + ", which expects "
              + expected;
        }
      }
    }
    return null;
  }
}
