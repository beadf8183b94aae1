package dev.weft.c10d.faults;

/**
 * The same with data in shared memory: ranks that die or stand still are noticed as they are over
 * TCP. Of the network's faults a broken connection is one for them; data do not pass there.
 */
class SharedMemoryFaultTest extends FaultTest {
  @Override
  String transport() {
    return "shm";
  }

  @Override
  boolean concerns(Proxy.Fault fault) {
    return fault == Proxy.Fault.DISCONNECT;
  }
}
