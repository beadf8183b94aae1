package dev.weft.dtensor;

import java.util.ArrayList;
import java.util.List;

/**
 * How a reshape maps dimensions: consecutive dimensions of the input that become consecutive
 * dimensions of the result, in groups of equal element counts.
 */
final class ViewGroups {
  /**
   * One group.
   *
   * @param from dimensions of the input, without those of size 1
   * @param to dimensions of the result, without those of size 1
   */
  record Group(List<Integer> from, List<Integer> to) {}

  private ViewGroups() {}

  static List<Group> of(long[] from, long[] to) {
    List<Group> groups = new ArrayList<>();
    int i = 0;
    int j = 0;
    while (true) {
      while (i < from.length && from[i] == 1) {
        i++;
      }
      while (j < to.length && to[j] == 1) {
        j++;
      }
      if (i == from.length || j == to.length) {
        return groups;
      }
      List<Integer> a = new ArrayList<>(List.of(i));
      List<Integer> b = new ArrayList<>(List.of(j));
      long na = from[i++];
      long nb = to[j++];
      while (na != nb) {
        if (na < nb && i < from.length) {
          if (from[i] != 1) {
            a.add(i);
          }
          na *= from[i++];
        } else if (j < to.length) {
          if (to[j] != 1) {
            b.add(j);
          }
          nb *= to[j++];
        } else {
          return groups; // empty tensors: what is left has no mapping
        }
      }
      groups.add(new Group(a, b));
    }
  }
}
