package dev.weft.c10d.mpi;

import com.sun.jna.Function;
import com.sun.jna.NativeLibrary;
import dev.weft.tensor.memory.HostMemory;
import dev.weft.tensor.memory.Memory;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The handlers of the signals that the JVM lives on (its null checks are segmentation faults), from
 * before a library was loaded. What the library has taken over is given back. Used once.
 */
final class Signals {
  private static final Logger LOG = LoggerFactory.getLogger(Signals.class);

  /** SEGV, BUS, FPE, ILL and the JVM's USR2 on Linux. */
  private static final int[] NUMBERS = {11, 7, 8, 4, 12};

  /** More than a sigaction has on any Linux; the handler comes first. */
  private static final int BYTES = 256;

  private final List<Long> saved = new ArrayList<>();

  private Signals() {}

  /** Remembers the handlers, and asks helpers of MPI libraries to leave signals alone. */
  static Signals save() {
    Signals signals = new Signals();
    if (!isLinux()) {
      return signals;
    }
    Function setenv = NativeLibrary.getProcess().getFunction("setenv");
    for (String[] variable :
        new String[][] {
          {"UCX_ERROR_SIGNALS", ""}, {"UCX_HANDLE_ERRORS", "none"}, {"OMPI_MCA_opal_signal", ""}
        }) {
      // What the user has set is kept.
      if (setenv.invokeInt(new Object[] {variable[0], variable[1], 0}) != 0) {
        LOG.warn("the environment variable {} could not be set", variable[0]);
      }
    }
    for (int number : NUMBERS) {
      long block = HostMemory.allocate(BYTES);
      if (sigaction(number, 0, block) != 0) {
        LOG.warn("the handler of signal {} could not be read", number);
      }
      signals.saved.add(block);
    }
    return signals;
  }

  /** Gives back what was taken over since. */
  void restore(String library) {
    long now = HostMemory.allocate(BYTES);
    for (int i = 0; i < saved.size(); i++) {
      long before = saved.get(i);
      int number = NUMBERS[i];
      boolean changed =
          sigaction(number, 0, now) == 0 && Memory.getLong(now) != Memory.getLong(before);
      if (changed) {
        int result = sigaction(number, before, 0);
        LOG.warn(
            "{} took over signal {}, which the JVM needs; {}",
            library,
            number,
            result == 0 ? "its handler was put back" : "its handler could not be put back");
      }
      HostMemory.free(before, BYTES);
    }
    saved.clear();
    HostMemory.free(now, BYTES);
  }

  private static int sigaction(int signal, long set, long get) {
    return NativeLibrary.getProcess()
        .getFunction("sigaction")
        .invokeInt(new Object[] {signal, set, get});
  }

  private static boolean isLinux() {
    return System.getProperty("os.name", "").equals("Linux");
  }
}
