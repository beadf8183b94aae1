package dev.weft.c10d;

/** The table of collectives on the host backend, in one memory. */
class CollectiveTableTest extends CollectiveSpec {
  CollectiveTableTest() {
    super(OnRanks.THREADS);
  }
}
