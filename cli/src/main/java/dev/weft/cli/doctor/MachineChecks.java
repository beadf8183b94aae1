package dev.weft.cli.doctor;

import static dev.weft.cli.doctor.Finding.broken;
import static dev.weft.cli.doctor.Finding.no;
import static dev.weft.cli.doctor.Finding.ok;
import static dev.weft.cli.doctor.Finding.warn;

import com.google.common.base.Splitter;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** What Weft needs of the operating system. */
final class MachineChecks {
  private static final int RENDEZVOUS_PORT = 29_500;
  private static final long SHARED_MEMORY = 1L << 30;
  private static final long OPEN_FILES = 4_096;
  // Those that a process reads without entering the kernel.
  private static final Set<String> FAST_CLOCKS = Set.of("tsc", "kvm-clock", "arch_sys_counter");

  private final Path root;
  private final long maxHeap;

  /**
   * Checks of a machine.
   *
   * @param root where its files are, {@code /}
   * @param maxHeap the most bytes that Java's heap may take
   */
  MachineChecks(Path root, long maxHeap) {
    this.root = root;
    this.maxHeap = maxHeap;
  }

  List<Finding> all() throws IOException {
    List<Finding> out = new ArrayList<>();
    Path shm = root.resolve("dev/shm");
    out.add(sharedMemory(Files.isDirectory(shm) ? shm.toFile().getUsableSpace() : -1));
    out.add(interfaces());
    out.add(hostName(InetAddress.getLocalHost()));
    out.add(loopback());
    out.add(port(RENDEZVOUS_PORT));
    out.add(clock());
    out.add(openFiles());
    out.add(lockedMemory());
    out.add(memoryLimit());
    return out;
  }

  /** Bytes that are free, or -1 where there is no such folder. */
  static Finding sharedMemory(long free) {
    String mend = "mount -o remount,size=8g /dev/shm (a container: docker run --shm-size=8g)";
    if (free < 0) {
      return no(
          "/dev/shm",
          "there is none; ranks of one machine then talk over TCP, and NCCL's fail",
          "mount -t tmpfs -o size=8g tmpfs /dev/shm");
    }
    String text = (free >> 20) + " MiB free";
    return free >= SHARED_MEMORY
        ? ok("/dev/shm", text)
        : warn("/dev/shm", text + "; several NCCL ranks need 1024", mend);
  }

  private static Finding interfaces() throws IOException {
    List<String> found = new ArrayList<>();
    for (NetworkInterface n : Collections.list(NetworkInterface.getNetworkInterfaces())) {
      for (InetAddress a : Collections.list(n.getInetAddresses())) {
        if (n.isUp() && !a.isLoopbackAddress() && !a.isLinkLocalAddress()) {
          found.add(n.getName() + " " + a.getHostAddress().replaceAll("%.*", ""));
        }
      }
    }
    return found.isEmpty()
        ? no("network", "loopback only: ranks on other machines cannot be reached", "ip link show")
        : ok("network", String.join(", ", found));
  }

  /** Other machines may be told this name's address. */
  static Finding hostName(InetAddress own) {
    String text = own.getHostName() + " is " + own.getHostAddress();
    return own.isLoopbackAddress()
        ? warn(
            "host name",
            text + " here; as a master address it would reach no other machine",
            "export WEFT_HOST_ADDRESS=$(hostname -I | cut -d' ' -f1)")
        : ok("host name", text);
  }

  private static Finding loopback() {
    try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket client = new Socket()) {
      client.connect(new InetSocketAddress(server.getInetAddress(), server.getLocalPort()), 2_000);
      return ok("loopback", "takes connections");
    } catch (IOException e) {
      return broken("loopback", "takes no connections: " + e.getMessage(), "ip link set lo up");
    }
  }

  /** Whether a port can be listened on. */
  static Finding port(int port) {
    try (ServerSocket server = new ServerSocket(port)) {
      return ok("port " + server.getLocalPort(), "free; nodes meet there unless told otherwise");
    } catch (IOException e) {
      return warn(
          "port " + port,
          "taken (" + e.getMessage() + "); nodes meet there unless told otherwise",
          "weft run --rdzv-endpoint HOST:" + (port + 1) + " ...");
    }
  }

  Finding clock() throws IOException {
    String source = text("sys/devices/system/clocksource/clocksource0/current_clocksource");
    if (source == null) {
      return no("clock", "its source cannot be told", "uname -a (Linux has it under /sys)");
    }
    return FAST_CLOCKS.contains(source) || source.startsWith("hyperv_clocksource")
        ? ok("clock", source)
        : warn(
            "clock",
            source + ": reading it enters the kernel, which slows waiting and recorded calls",
            "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource");
  }

  Finding openFiles() throws IOException {
    long limit = limit("Max open files");
    String text = limit == Long.MAX_VALUE ? "unlimited" : Long.toString(limit);
    return limit < 0
        ? no("ulimit -n", "cannot be told", "ulimit -n")
        : limit >= OPEN_FILES
            ? ok("ulimit -n", text + " open files")
            : warn(
                "ulimit -n",
                text + " open files; a store or a rank has a connection to each other rank",
                "ulimit -n 65536");
  }

  Finding lockedMemory() throws IOException {
    long limit = limit("Max locked memory");
    boolean remote = Files.isDirectory(root.resolve("sys/class/infiniband"));
    String text = limit == Long.MAX_VALUE ? "unlimited" : (limit >> 10) + " KiB";
    return limit < 0
        ? no("ulimit -l", "cannot be told", "ulimit -l")
        : limit == Long.MAX_VALUE || !remote
            ? ok("ulimit -l", text + " may be locked" + (remote ? "" : "; there is no InfiniBand"))
            : warn(
                "ulimit -l",
                text + " may be locked; NCCL over InfiniBand needs more",
                "ulimit -l unlimited");
  }

  /** The soft limit of this process, {@code Long.MAX_VALUE} for none, -1 where it is not told. */
  private long limit(String name) throws IOException {
    Path file = root.resolve("proc/self/limits");
    if (!Files.exists(file)) {
      return -1;
    }
    for (String line : Files.readAllLines(file)) {
      if (line.startsWith(name)) {
        String soft =
            Splitter.on(' ').omitEmptyStrings().splitToList(line.substring(name.length())).get(0);
        return soft.equals("unlimited") ? Long.MAX_VALUE : Long.parseLong(soft);
      }
    }
    return -1;
  }

  /** Tensors live outside Java's heap, in what the control group leaves. */
  Finding memoryLimit() throws IOException {
    String max = text("sys/fs/cgroup/memory.max");
    if (max == null) {
      max = text("sys/fs/cgroup/memory/memory.limit_in_bytes");
    }
    // Version 1 says "none" by a number near 2^63.
    if (max == null || max.equals("max") || Long.parseLong(max) > 1L << 60) {
      return ok("memory", "no limit by a control group");
    }
    long limit = Long.parseLong(max);
    String text =
        "%d MiB by the control group, of which the heap may take %d"
            .formatted(limit >> 20, maxHeap >> 20);
    return maxHeap <= limit / 2
        ? ok("memory", text)
        : warn(
            "memory",
            text + "; tensors are outside of it, and the kernel ends what exceeds the limit",
            "export WEFT_JAVA_OPTS=-Xmx" + Math.max(64, limit >> 22) + "m");
  }

  private @Nullable String text(String file) throws IOException {
    Path path = root.resolve(file);
    return Files.isReadable(path) ? Files.readString(path).strip() : null;
  }
}
