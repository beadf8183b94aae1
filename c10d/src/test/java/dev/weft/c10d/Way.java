package dev.weft.c10d;

/** How the ranks of a test's world reach each other; all are threads of the test. */
enum Way {
  THREADS,
  TCP,
  SHM;

  LocalWorld of(LocalWorld world) {
    return switch (this) {
      case THREADS -> world;
      case TCP -> world.overTcp();
      case SHM -> world.overSharedMemory();
    };
  }
}
