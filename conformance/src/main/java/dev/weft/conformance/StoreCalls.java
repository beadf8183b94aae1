package dev.weft.conformance;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import dev.weft.c10d.store.Store;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;

/** Calls of a store by their names in the golden data. One thread; not reusable. */
final class StoreCalls {
  private Store store;
  private final List<CompletableFuture<Void>> later = new ArrayList<>();

  StoreCalls(Store store) {
    this.store = store;
  }

  @Nullable Object call(String op, JsonNode args) {
    switch (op) {
      case "set" -> store.set(text(args.get(0)), text(args.get(1)));
      case "append" -> store.append(text(args.get(0)), text(args.get(1)));
      case "queue_push" -> store.queuePush(text(args.get(0)), text(args.get(1)));
      case "multi_set" ->
          store.multiSet(
              texts(args.get(0)), texts(args.get(1)).stream().map(v -> v.getBytes(UTF_8)).toList());
      case "wait" -> {
        if (args.size() > 1) {
          store.waitFor(texts(args.get(0)), millis(args.get(1)));
        } else {
          store.waitFor(texts(args.get(0)));
        }
      }
      case "barrier" -> store.barrier(text(args.get(0)), args.get(1).asInt(), millis(args.get(2)));
      case "set_timeout" -> store = store.withTimeout(millis(args.get(0)));
      case "after_ms_set" -> {
        var delayed =
            CompletableFuture.delayedExecutor(args.get(0).asLong(), TimeUnit.MILLISECONDS);
        var using = store;
        later.add(
            CompletableFuture.runAsync(
                () -> using.set(text(args.get(1)), text(args.get(2))), delayed));
      }
      default -> {
        return query(op, args);
      }
    }
    return null;
  }

  private @Nullable Object query(String op, JsonNode args) {
    return switch (op) {
      case "get" -> blob(store.get(text(args.get(0))));
      case "multi_get" ->
          store.multiGet(texts(args.get(0))).stream().map(StoreCalls::blob).toList();
      case "add" -> store.add(text(args.get(0)), args.get(1).asLong());
      case "check" -> store.check(texts(args.get(0)));
      case "num_keys" -> store.numKeys();
      case "delete_key" -> store.deleteKey(text(args.get(0)));
      case "list_keys_sorted" -> store.listKeys().stream().sorted().toList();
      case "compare_set" ->
          blob(
              store
                  .compareSet(text(args.get(0)), text(args.get(1)), text(args.get(2)))
                  .getBytes(UTF_8));
      case "queue_len" -> store.queueLen(text(args.get(0)));
      case "queue_pop" ->
          blob(
              args.size() > 1 && !args.get(1).asBoolean()
                  ? store.queuePoll(text(args.get(0))).orElseThrow()
                  : store.queuePop(text(args.get(0))));
      case "add_from_threads" ->
          addFromThreads(text(args.get(0)), args.get(1).asInt(), args.get(2).asInt());
      default -> throw new CaseRunner.Mismatch("no such call: " + op);
    };
  }

  private Map<String, Object> addFromThreads(String key, int threads, int times) {
    List<CompletableFuture<List<Long>>> all =
        IntStream.range(0, threads)
            .mapToObj(
                t ->
                    CompletableFuture.supplyAsync(
                        () -> IntStream.range(0, times).mapToObj(i -> store.add(key, 1)).toList()))
            .toList();
    Set<Long> seen = new TreeSet<>();
    all.forEach(one -> seen.addAll(one.join()));
    return Map.of("distinct", (long) seen.size(), "max", Collections.max(seen));
  }

  void finish() {
    later.forEach(CompletableFuture::join);
  }

  private static Object blob(byte[] value) {
    if (value.length <= 4096) {
      return Map.of("bytes", HexFormat.of().formatHex(value));
    }
    return Map.of(
        "bytes_length",
        (long) value.length,
        "head",
        HexFormat.of().formatHex(value, 0, 16),
        "tail",
        HexFormat.of().formatHex(value, value.length - 16, value.length));
  }

  private static String text(JsonNode node) {
    if (node.isObject()) {
      return node.get("repeat").asText().repeat(node.get("times").asInt());
    }
    if (!node.asText().equals("@1MiB")) {
      return node.asText();
    }
    var big = new StringBuilder();
    for (int i = 0; i < 1 << 20; i++) {
      big.append((char) (33 + i % 90));
    }
    return big.toString();
  }

  private static List<String> texts(JsonNode node) {
    return StreamSupport.stream(node.spliterator(), false).map(StoreCalls::text).toList();
  }

  private static Duration millis(JsonNode node) {
    return Duration.ofMillis(node.asLong());
  }

  /** A JSON value in the form that a {@link StoreCalls} returns. */
  static @Nullable Object plain(JsonNode node) {
    if (node.isNull()) {
      return null;
    }
    if (node.isArray()) {
      return StreamSupport.stream(node.spliterator(), false).map(StoreCalls::plain).toList();
    }
    if (node.isObject()) {
      Map<String, @Nullable Object> fields = new HashMap<>();
      node.fieldNames().forEachRemaining(name -> fields.put(name, plain(node.get(name))));
      return fields;
    }
    return node.isBoolean()
        ? (Object) node.asBoolean()
        : node.isNumber() ? (Object) node.asLong() : node.asText();
  }
}
