package dev.weft.c10d.debug;

import java.util.AbstractList;
import java.util.List;

/** A list that Python's pickle has as a tuple. Immutable. */
final class Tuple extends AbstractList<Object> {
  private final List<Object> items;

  Tuple(List<?> items) {
    this.items = List.copyOf(items);
  }

  @Override
  public Object get(int index) {
    return items.get(index);
  }

  @Override
  public int size() {
    return items.size();
  }
}
