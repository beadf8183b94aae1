package dev.weft.c10d.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.weft.c10d.BackendRegistry;
import dev.weft.tensor.cuda.CudaLibraries;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

/** What can be said of the NCCL backend without a GPU. */
class NcclWithoutGpuTest {
  @Test
  @DisplayName("P60: what is missing is named, where it was looked for, and where it comes from")
  void whatIsMissingIsNamed() {
    String text = NcclLibrary.missing(new CudaLibraries.Found("libnccl.so.2", null, null), "no x");
    assertThat(text)
        .contains("libnccl.so.2 was not found in ")
        .contains("/usr/lib64")
        .contains("nvidia-nccl-cu13")
        .contains("WEFT_CUDA_LIB_DIRS");
    Path file = Path.of("/some/where/libnccl.so.2");
    assertThat(
            NcclLibrary.missing(
                new CudaLibraries.Found("libnccl.so.2", file, "wrong ELF class"), ""))
        .contains("cannot be loaded: wrong ELF class");
    assertThat(NcclLibrary.problemOf(21200, new CudaLibraries.Found("libnccl.so.2", file, null)))
        .contains("/some/where/libnccl.so.2")
        .contains("is NCCL 2.12.0")
        .contains("2.18.0 or newer");
    assertThat(NcclLibrary.problemOf(22809, new CudaLibraries.Found("libnccl.so.2", file, null)))
        .isNull();
  }

  @Test
  void theBackendIsKnownWhereverTheProgramRuns() {
    assertThat(BackendRegistry.find("nccl").deviceTypes()).containsExactly("cuda");
    assertThat(BackendRegistry.isAvailable("nccl")).isEqualTo(Nccl.isAvailable());
    if (!Nccl.isAvailable()) {
      assertThatThrownBy(() -> BackendRegistry.available("nccl"))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessageContaining("backend 'nccl' cannot be used here: ");
    }
  }

  @Test
  void optionsComeFromTheEnvironment() {
    assertThat(NcclOptions.fromEnvironment(Map.of()))
        .isEqualTo(new NcclOptions(false, false, true, 0, 0, false));
    assertThat(
            NcclOptions.fromEnvironment(Map.of("TORCH_NCCL_USE_COMM_NONBLOCKING", "1"))
                .blockingLaunch())
        .isFalse();
    NcclOptions torch =
        NcclOptions.fromEnvironment(
            Map.of("TORCH_NCCL_BLOCKING_WAIT", "1", "TORCH_NCCL_HIGH_PRIORITY", "true"));
    assertThat(torch.blockingWait()).isTrue();
    assertThat(torch.highPriorityStream()).isTrue();
    assertThat(
            NcclOptions.fromEnvironment(
                    Map.of("TORCH_NCCL_BLOCKING_WAIT", "1", "WEFT_NCCL_BLOCKING_WAIT", "0"))
                .blockingWait())
        .isFalse();
    assertThatThrownBy(
            () -> NcclOptions.fromEnvironment(Map.of("WEFT_NCCL_HIGH_PRIORITY", "maybe")))
        .hasMessageContaining("WEFT_NCCL_HIGH_PRIORITY is 'maybe'");
    assertThatThrownBy(() -> NcclOptions.fromEnvironment(Map.of()).withCtas(8, 4))
        .hasMessageContaining("minCtas is 8 and maxCtas 4");
  }

  /** P33: any two ranks put a message between them in groups of one number. */
  @Test
  void largeExchangesMakeMatchingGroups() {
    int n = 5;
    int each = 300;
    List<Map<Long, Set<String>>> groups = new ArrayList<>();
    for (int me = 0; me < n; me++) {
      Exchange exchange = new Exchange("test", me, n);
      for (int r = 0; r < n; r++) {
        for (int i = 0; i < each; i++) {
          Exchange unused = exchange.send(r, i, 1, 0).receive(r, i, 1, 0);
        }
      }
      Map<Long, Set<String>> mine = new HashMap<>();
      for (List<Exchange.Part> group : exchange.groups()) {
        assertThat(group).hasSizeLessThanOrEqualTo(2 * Exchange.ROUNDS);
        Set<String> messages =
            mine.computeIfAbsent(group.get(0).round() / Exchange.ROUNDS, k -> new HashSet<>());
        for (Exchange.Part p : group) {
          int from = p.send() ? me : p.peer();
          int to = p.send() ? p.peer() : me;
          assertThat(messages.add(from + ">" + to + " #" + p.address() + p.send())).isTrue();
        }
      }
      groups.add(mine);
    }
    for (int a = 0; a < n; a++) {
      for (Map.Entry<Long, Set<String>> group : groups.get(a).entrySet()) {
        for (String message : group.getValue()) {
          if (message.endsWith("true")) {
            int b = Integer.parseInt(message.substring(2, 3));
            assertThat(groups.get(b).get(group.getKey()))
                .contains(message.replace("true", "false"));
          }
        }
      }
    }
  }

  @Test
  void ranksOfOneProcessDoNotShareADevice() {
    DeviceClaims claims = new DeviceClaims();
    claims.claim(0, 0, 2);
    claims.claim(0, 0, 2);
    claims.claim(1, 1, 2);
    assertThatThrownBy(() -> claims.claim(1, 0, 2))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining("ranks 0 and 1 of one process both use cuda:0")
        .hasMessageContaining("one rank a GPU");
  }
}
