package dev.weft.c10d.debug;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** An entry of a rank's dump, in its group. Its identity is the object's. */
final class DumpEntry {
  private static final Pattern MESSAGE = Pattern.compile("(send|recv) (\\d+)(?:->|<-)(\\d+)");
  private static final int ANY = -1;

  final int rank;
  final JsonNode node;
  final Group group;
  final String library;
  final String operation;

  /** Global ranks of a message; -1 for a receive from any. */
  final int source;

  final int destination;

  private DumpEntry(int rank, JsonNode node, Group group) {
    this.rank = rank;
    this.node = node;
    this.group = group;
    String name = node.get("profiling_name").asText();
    int colon = name.indexOf(':');
    this.library = colon < 0 ? "" : name.substring(0, colon);
    String call = name.substring(colon + 1);
    Matcher m = MESSAGE.matcher(call);
    if (m.matches()) {
      boolean send = m.group(1).equals("send");
      int self = group.global(Integer.parseInt(m.group(2)));
      int peer = group.global(Integer.parseInt(m.group(3)));
      this.operation = m.group(1);
      this.source = send ? self : peer;
      this.destination = send ? peer : self;
    } else {
      this.operation = call;
      this.source = ANY;
      this.destination = rank;
    }
  }

  /** The ranks of a group, in group-rank order, and what it is called. */
  record Group(String name, String description, List<Integer> ranks) {
    int global(int groupRank) {
      return groupRank < ranks.size() ? ranks.get(groupRank) : -2;
    }

    String label() {
      return name + ":" + description;
    }

    /** For messages. */
    String words() {
      boolean plain = description.isEmpty() || description.equals("undefined");
      return "group '" + (plain ? name : description) + "' of ranks " + ranks;
    }

    /** What identifies it: the name and the set of its ranks. */
    String key() {
      return name + new TreeSet<>(ranks);
    }
  }

  static DumpEntry of(int rank, JsonNode node, List<Group> groups) {
    JsonNode pair = node.path("process_group");
    String name = pair.path(0).asText();
    for (Group g : groups) {
      if (g.name().equals(name)) {
        return new DumpEntry(rank, node, g);
      }
    }
    throw new IllegalArgumentException(
        "the dump of rank "
            + rank
            + " has an entry of group '"
            + name
            + "', which its pg_config does not list");
  }

  boolean isP2p() {
    return node.path("is_p2p").asBoolean();
  }

  boolean isMessage() {
    return operation.equals("send") || operation.equals("recv");
  }

  long sequence() {
    return node.path("collective_seq_id").asLong();
  }

  long p2pSequence() {
    return node.path("p2p_seq_id").asLong();
  }

  long recordId() {
    return node.path("record_id").asLong();
  }

  String state() {
    return node.path("state").asText();
  }

  boolean isCompleted() {
    return state().equals("completed");
  }

  String profilingName() {
    return node.path("profiling_name").asText();
  }

  List<List<Long>> inputs() {
    return sizes("input_sizes");
  }

  List<List<Long>> outputs() {
    return sizes("output_sizes");
  }

  private List<List<Long>> sizes(String field) {
    List<List<Long>> out = new ArrayList<>();
    for (JsonNode one : node.path(field)) {
      List<Long> size = new ArrayList<>();
      one.forEach(n -> size.add(n.asLong()));
      out.add(size);
    }
    return out;
  }

  Set<String> dtypes() {
    Set<String> out = new TreeSet<>();
    node.path("input_dtypes").forEach(n -> out.add(n.asText()));
    node.path("output_dtypes").forEach(n -> out.add(n.asText()));
    return out;
  }

  static long numel(List<List<Long>> sizes) {
    long sum = 0;
    for (List<Long> size : sizes) {
      sum += size.stream().reduce(1L, (a, b) -> a * b);
    }
    return sum;
  }

  /** Whether this and another could be the two sides of a message. */
  boolean complements(DumpEntry other) {
    return isMessage()
        && other.isMessage()
        && !operation.equals(other.operation)
        && destination == other.destination
        && (source == other.source || source == ANY || other.source == ANY)
        && group.key().equals(other.group.key());
  }

  /** The operation and its number, for messages. */
  String call() {
    if (isMessage()) {
      String peer = operation.equals("send") ? " to rank " + destination : " from " + from();
      return operation + peer + " (message " + p2pSequence() + ")";
    }
    return operation + " (collective " + sequence() + ")";
  }

  private String from() {
    return source == ANY ? "any rank" : "rank " + source;
  }

  /** Sizes and element types, for messages. */
  String data() {
    return inputs() + (outputs().equals(inputs()) ? "" : " -> " + outputs()) + " of " + dtypes();
  }

  /** Where it was called from; empty when that was not recorded. */
  String where() {
    JsonNode frame = node.path("frames").path(0);
    return frame.isMissingNode()
        ? ""
        : " at "
            + frame.path("filename").asText()
            + ":"
            + frame.path("line").asText()
            + " ("
            + frame.path("name").asText()
            + ")";
  }

  /** The same operation on the same data from the same place. */
  boolean looksLike(@Nullable DumpEntry other) {
    return other != null
        && operation.equals(other.operation)
        && inputs().equals(other.inputs())
        && Objects.equals(where(), other.where());
  }

  @Override
  public String toString() {
    return "rank " + rank + ": " + call();
  }
}
