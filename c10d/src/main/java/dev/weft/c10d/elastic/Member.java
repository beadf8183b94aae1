package dev.weft.c10d.elastic;

/**
 * An agent in the state of a run.
 *
 * @param id its name, unique in the run
 * @param address where the others reach servers of this agent
 * @param previous its number in the attempt before, or -1 for a newcomer
 */
record Member(String id, String address, int previous) {
  Member withPrevious(int number) {
    return new Member(id, address, number);
  }
}
