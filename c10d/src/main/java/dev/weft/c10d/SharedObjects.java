package dev.weft.c10d;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;

/** Objects that the ranks of a world of threads share, one a class. Thread-safe. */
final class SharedObjects {
  private final Map<Class<?>, Object> objects = new HashMap<>();

  synchronized <T> T get(Class<T> type, Supplier<T> maker) {
    Object there = objects.get(type);
    if (there == null) {
      there = maker.get();
      objects.put(type, there);
    }
    return type.cast(there);
  }
}
