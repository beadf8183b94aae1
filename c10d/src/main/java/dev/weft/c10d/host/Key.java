package dev.weft.c10d.host;

/**
 * Which messages belong together: those of one phase of one collective of one group.
 *
 * @param group the group's id
 * @param sequence the collective's number in the group
 * @param phase 0 for the opening, then as the algorithm goes on
 */
record Key(long group, long sequence, int phase) {
  /** The phase in which a rank says why it has given a collective up; nobody waits for it. */
  static final int GIVEN_UP = -1;
}
