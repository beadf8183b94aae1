package dev.weft.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

@Timeout(120)
class DoctorTest {
  private static final long GIB = 1L << 30;

  @TempDir private Path root;

  private MachineChecks machine() {
    return new MachineChecks(root, GIB);
  }

  private void file(String name, String text) throws IOException {
    Path path = root.resolve(name);
    Files.createDirectories(path.getParent());
    Files.writeString(path, text);
  }

  private static void assertFinding(Finding f, Finding.State state, String text, String mend) {
    assertThat(f.state()).as(f.toString()).isEqualTo(state);
    assertThat(f.text()).contains(text);
    assertThat(String.valueOf(f.mend())).startsWith(mend);
  }

  @Test
  void limitsAreReadAndLowOnesMended() throws IOException {
    file(
        "proc/self/limits",
        """
        Limit                     Soft Limit           Hard Limit           Units
        Max open files            1024                 1048576              files
        Max locked memory         8388608              unlimited            bytes
        """);
    assertFinding(machine().openFiles(), Finding.State.WARN, "1024 open files", "ulimit -n 65536");
    assertFinding(machine().lockedMemory(), Finding.State.OK, "there is no InfiniBand", "null");
    Files.createDirectories(root.resolve("sys/class/infiniband"));
    assertFinding(machine().lockedMemory(), Finding.State.WARN, "8192 KiB", "ulimit -l unlimited");
    file(
        "proc/self/limits",
        "Max open files            65536      65536    files\nMax locked memory  unlimited  unlimited bytes\n");
    assertFinding(machine().openFiles(), Finding.State.OK, "65536 open files", "null");
    assertFinding(machine().lockedMemory(), Finding.State.OK, "unlimited may be locked", "null");
  }

  @Test
  void aHeapThatLeavesNoRoomForTensorsIsSeen() throws IOException {
    assertFinding(machine().memoryLimit(), Finding.State.OK, "no limit", "null");
    file("sys/fs/cgroup/memory.max", "max\n");
    assertFinding(machine().memoryLimit(), Finding.State.OK, "no limit", "null");
    file("sys/fs/cgroup/memory.max", 4 * GIB + "\n");
    assertFinding(machine().memoryLimit(), Finding.State.OK, "4096 MiB", "null");
    file("sys/fs/cgroup/memory.max", GIB + "\n");
    assertFinding(
        machine().memoryLimit(),
        Finding.State.WARN,
        "1024 MiB by the control group, of which the heap may take 1024",
        "export WEFT_JAVA_OPTS=-Xmx256m");
    Files.delete(root.resolve("sys/fs/cgroup/memory.max"));
    file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assertFinding(machine().memoryLimit(), Finding.State.OK, "no limit", "null");
  }

  @Test
  void clocksSharedMemoryNamesAndPorts() throws IOException {
    String clock = "sys/devices/system/clocksource/clocksource0/current_clocksource";
    assertFinding(machine().clock(), Finding.State.NO, "cannot be told", "uname");
    file(clock, "hpet\n");
    assertFinding(machine().clock(), Finding.State.WARN, "hpet", "echo tsc");
    file(clock, "tsc\n");
    assertFinding(machine().clock(), Finding.State.OK, "tsc", "null");

    assertFinding(MachineChecks.sharedMemory(-1), Finding.State.NO, "none", "mount -t tmpfs");
    assertFinding(
        MachineChecks.sharedMemory(64 << 20), Finding.State.WARN, "64 MiB", "mount -o remount");
    assertFinding(MachineChecks.sharedMemory(GIB), Finding.State.OK, "1024 MiB free", "null");

    InetAddress loop = InetAddress.getByAddress("box", new byte[] {127, 0, 1, 1});
    assertFinding(
        MachineChecks.hostName(loop),
        Finding.State.WARN,
        "box is 127.0.1.1",
        "export WEFT_HOST_ADDRESS=");
    InetAddress real = InetAddress.getByAddress("box", new byte[] {10, 0, 0, 1});
    assertFinding(MachineChecks.hostName(real), Finding.State.OK, "box is 10.0.0.1", "null");

    try (ServerSocket taken = new ServerSocket(0)) {
      int port = taken.getLocalPort();
      assertFinding(
          MachineChecks.port(port),
          Finding.State.WARN,
          "taken",
          "weft run --rdzv-endpoint HOST:" + (port + 1));
    }
  }

  @Test
  void theOwnPlaceInAWorldIsFoundByItsAddress() throws IOException {
    // 192.0.2.0/24 and 198.51.100.0/24 are for documentation (RFC 5737).
    assertThat(WorldCheck.rankOf(List.of("198.51.100.77", "127.0.0.1"))).isEqualTo(1);
    assertThatThrownBy(() -> WorldCheck.rankOf(List.of("127.0.0.1", "localhost")))
        .hasMessageContaining("has 2 addresses of this host; expected one, or --rank");
    assertThatThrownBy(() -> WorldCheck.rankOf(List.of("198.51.100.77")))
        .hasMessageContaining("has 0 addresses");
  }

  private static int doctor(StringWriter out, String... args) {
    CommandLine command = new CommandLine(new DoctorCommand());
    command.setOut(new PrintWriter(out, true));
    command.setErr(new PrintWriter(out, true));
    return command.execute(args);
  }

  @Test
  void thisMachineCanBuildAndRunWeft() {
    StringWriter out = new StringWriter();
    assertThat(doctor(out)).as(out.toString()).isZero();
    assertThat(out.toString())
        .containsPattern("(?m)^ok      OpenBLAS +multiplies$")
        .containsPattern("(?m)^ok      ND4J +adds$")
        .containsPattern("(?m)^[0-9]+ work, [0-9]+ not there, [0-9]+ to look at, 0 broken$");
  }

  @Test
  void aHostThatDoesNotComeIsNamedAndFails() throws IOException {
    StringWriter out = new StringWriter();
    int code =
        doctor(
            out,
            "--world",
            "127.0.0.1,127.0.0.1",
            "--rank",
            "0",
            "--port",
            free(),
            "--timeout",
            "2");
    assertThat(code).as(out.toString()).isEqualTo(1);
    assertThat(out.toString())
        .containsPattern("(?m)^broken +rendezvous ")
        .contains("mend: weft doctor --world 127.0.0.1,127.0.0.1 on the missing hosts, too")
        .contains("1 broken");
  }

  private static String free() throws IOException {
    try (ServerSocket socket = new ServerSocket(0)) {
      return Integer.toString(socket.getLocalPort());
    }
  }

  @Test
  void twoHostsMeetAndMeasureTheirNetwork() throws Exception {
    String port = free();
    List<Process> doctors = new ArrayList<>();
    for (int rank = 0; rank < 2; rank++) {
      doctors.add(
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                  "-Xmx256m",
                  "-XX:TieredStopAtLevel=1",
                  "-cp",
                  System.getProperty("java.class.path"),
                  "dev.weft.cli.Weft",
                  "doctor",
                  "--world=127.0.0.1,127.0.0.1",
                  "--rank=" + rank,
                  "--port=" + port)
              .redirectErrorStream(true)
              .start());
    }
    List<String> said = new ArrayList<>();
    for (Process p : doctors) {
      try (var in = p.getInputStream()) {
        said.add(new String(in.readAllBytes(), StandardCharsets.UTF_8));
      }
      assertThat(p.waitFor()).as(said.toString()).isZero();
    }
    assertThat(said.get(0))
        .contains("all 2 hosts have met at 127.0.0.1:" + port)
        .containsPattern("-> 127.0.0.1 #1 +round trip [0-9.]+ ms, [0-9]+ MB/s out, [0-9]+ MB/s in")
        .containsPattern("(?m)^ok      clock 127.0.0.1 +-?0\\.[0-9]+ s from this one");
    assertThat(said.get(1)).containsPattern("-> 127.0.0.1 #0 +[0-9]+ MB/s out");
  }
}
