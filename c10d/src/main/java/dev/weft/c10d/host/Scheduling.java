package dev.weft.c10d.host;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Platform;
import dev.weft.tensor.memory.Memory;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What threads that wait ask of Linux' scheduler, by calls that Java does not have: futex(2),
 * sched_setattr(2) and sched_getcpu(3). Any thread may call it. Nothing but {@link #prepare} and
 * {@link #isReady} may be called where the latter is false: before JNA has loaded, where it does
 * not, and on other systems.
 */
final class Scheduling {
  /** The longest sleep, after which a thread looks for what does not wake it: failures, aborts. */
  private static final long SLEEP_NANOS = 20_000_000;

  /** The least that the scheduler gives. */
  private static final long SLICE_NANOS = 100_000;

  private static final Logger LOG = LoggerFactory.getLogger(Scheduling.class);

  private static final long FUTEX_WAIT = 0;
  private static final long FUTEX_WAKE = 1;

  /** A sched_attr: its size, and where the slice is. */
  private static final int ATTRIBUTES = 48;

  private static final int RUNTIME = 24;
  private static final int POLICY = 4;
  private static final int NORMAL = 0;
  private static final int BATCH = 3;

  private static final ThreadLocal<boolean[]> SHORTENED =
      ThreadLocal.withInitial(() -> new boolean[1]);

  /** The numbers of the calls. */
  private record Numbers(long futex, long setAttributes, long getAttributes) {
    static final Numbers X86_64 = new Numbers(202, 314, 315);
    static final Numbers AARCH64 = new Numbers(98, 274, 275);
  }

  private static final Numbers NUMBERS = Platform.isARM() ? Numbers.AARCH64 : Numbers.X86_64;

  /** A timespec, and a word that nobody sleeps on. */
  private static final ByteBuffer CONSTANTS =
      memory(24).putLong(0, SLEEP_NANOS / 1_000_000_000).putLong(8, SLEEP_NANOS % 1_000_000_000);

  private static final long TIMEOUT = Memory.addressOf(CONSTANTS);

  // Set once; JNA takes some tenths of a second to load, which nobody waits for.
  private static volatile boolean ready;
  private static boolean preparing;

  private Scheduling() {}

  private static ByteBuffer memory(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  private static boolean isUsable() {
    boolean known = Platform.isLinux() && Platform.is64Bit();
    if (!known || !(Platform.isIntel() || Platform.isARM())) {
      return false;
    }
    try {
      Native.register(Scheduling.class, NativeLibrary.getProcess());
      if (syscall(NUMBERS.futex(), TIMEOUT + 16, FUTEX_WAKE, 1, 0, 0, 0) == 0) {
        return true;
      }
      LOG.info("ranks that sleep are woken over their connections: futex(2) is refused");
    } catch (LinkageError | RuntimeException e) {
      LOG.info(
          "ranks that sleep are woken over their connections, as JNA does not load: {}",
          e.toString());
    }
    return false;
  }

  private static native long syscall(
      long number, long first, long second, long third, long fourth, long fifth, long sixth);

  private static native int sched_getcpu();

  /** Begins to load what it takes, on a thread of its own; once. */
  static synchronized void prepare() {
    if (preparing) {
      return;
    }
    preparing = true;
    Thread loads = new Thread(() -> ready = isUsable(), "weft-scheduling");
    loads.setDaemon(true);
    loads.start();
  }

  /** Whether this machine has it, and it has loaded. */
  static boolean isReady() {
    return ready;
  }

  /** The processor that this thread runs on, from 0. */
  static int processor() {
    return sched_getcpu();
  }

  /**
   * Sleeps while a word has this value, until another thread or process wakes it, or for a while;
   * may end early.
   *
   * @param word an address of memory that may be shared between processes
   */
  static void sleep(long word, int value) {
    long unused = syscall(NUMBERS.futex(), word, FUTEX_WAIT, value, TIMEOUT, 0, 0);
  }

  /** Wakes a thread that sleeps on a word, of any process. */
  static void wake(long word) {
    long unused = syscall(NUMBERS.futex(), word, FUTEX_WAKE, 1, 0, 0, 0);
  }

  /** The length of this thread's slices in ns as the scheduler tells it, 0 for its own choice. */
  static long slice() {
    ByteBuffer attributes = memory(ATTRIBUTES);
    try {
      long address = Memory.addressOf(attributes);
      long failed = syscall(NUMBERS.getAttributes(), 0, address, ATTRIBUTES, 0, 0, 0);
      return failed == 0 ? attributes.getLong(RUNTIME) : 0;
    } finally {
      Reference.reachabilityFence(attributes);
    }
  }

  /**
   * Has this thread run in the shortest slices there are. From Linux 6.6 on a thread that yields
   * can go on until its slice ends, while the one it waits for has no processor; and one that has
   * yielded pays with a slice of its time. For good; repeated calls of a thread cost nothing.
   */
  static void shortenSlices() {
    if (SHORTENED.get()[0]) {
      return;
    }
    SHORTENED.get()[0] = true;
    ByteBuffer attributes = memory(ATTRIBUTES);
    try {
      long address = Memory.addressOf(attributes);
      // A kernel that refuses, or takes no notice, leaves the slices as they are; and so do the
      // policies that are no time sharing, where the field is something else.
      if (syscall(NUMBERS.getAttributes(), 0, address, ATTRIBUTES, 0, 0, 0) == 0
          && (attributes.getInt(POLICY) == NORMAL || attributes.getInt(POLICY) == BATCH)) {
        attributes.putLong(RUNTIME, SLICE_NANOS);
        long unused = syscall(NUMBERS.setAttributes(), 0, address, 0, 0, 0, 0);
      }
    } finally {
      Reference.reachabilityFence(attributes);
    }
  }
}
