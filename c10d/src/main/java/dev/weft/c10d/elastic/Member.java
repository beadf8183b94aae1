package dev.weft.c10d.elastic;

/**
 * An agent in the state of a run.
 *
 * @param id its name, unique in the run
 * @param previous its number in the attempt before, or -1 for a newcomer
 */
record Member(String id, int previous) {
  Member withPrevious(int number) {
    return new Member(id, number);
  }
}
