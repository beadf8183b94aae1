package dev.weft.c10d;

import org.junit.jupiter.api.Nested;

/** The table of collectives on the host backend. */
class CollectiveTableTest {
  @Nested
  class InOneMemory extends CollectiveSpec {
    InOneMemory() {
      super(OnRanks.by(Way.THREADS));
    }
  }

  @Nested
  class OverTcp extends CollectiveSpec {
    OverTcp() {
      super(OnRanks.by(Way.TCP));
    }
  }

  @Nested
  class OverSharedMemory extends CollectiveSpec {
    OverSharedMemory() {
      super(OnRanks.by(Way.SHM));
    }
  }

  /** Nothing goes along with the calls, and all is cut into chunks of a page. */
  @Nested
  class OverSmallSharedMemory extends CollectiveSpec {
    OverSmallSharedMemory() {
      super(
          OnRanks.in(
              () ->
                  Way.SHM
                      .of(LocalWorld.of(3))
                      .variable("WEFT_SHM_INLINE", "0")
                      .variable("WEFT_SHM_CHUNK", "4096")));
    }
  }

  @Nested
  class ByRingsAndParts extends CollectiveSpec {
    ByRingsAndParts() {
      super(named("all_reduce=ring,broadcast=scatter,reduce=scatter"));
    }
  }

  @Nested
  class Straight extends CollectiveSpec {
    Straight() {
      super(named("all_reduce=flat,broadcast=flat,reduce=flat"));
    }
  }

  private static OnRanks named(String algorithms) {
    return OnRanks.in(() -> LocalWorld.of(3).overTcp().variable("WEFT_HOST_ALGORITHM", algorithms));
  }
}
