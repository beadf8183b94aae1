package dev.weft.c10d;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.MatMul;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.bytedeco.openblas.global.openblas_full;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Ranks that are threads of one process do not contend for OpenBLAS's threads. */
class BlasThreadsTest {
  /** Prints the numbers of threads: alone, on two ranks, alone again, on one rank. */
  static final class Program {
    public static void main(String[] args) {
      System.out.println("threads " + threadsOfAProduct());
      for (int n : LocalWorld.call(2, rank -> threadsOfAProduct())) {
        System.out.println("threads " + n);
      }
      System.out.println("threads " + threadsOfAProduct());
      System.out.println("threads " + LocalWorld.call(1, rank -> threadsOfAProduct()).get(0));
    }

    private static int threadsOfAProduct() {
      Tensor a = Tensor.of(new float[64], 8, 8);
      assertThat(MatMul.matmul(a, a).toFloatArray()).containsOnly(0);
      return openblas_full.openblas_get_num_threads();
    }
  }

  private static List<String> run(Map<String, String> environment) throws Exception {
    ProcessBuilder builder =
        new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-cp",
            System.getProperty("java.class.path"),
            Program.class.getName());
    builder.environment().keySet().removeAll(List.of("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"));
    builder.environment().putAll(environment);
    Process process = builder.redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(said).isZero();
    return said.lines().filter(l -> l.startsWith("threads ")).toList();
  }

  @Test
  @Timeout(120)
  void severalRanksHaveOneEach() throws Exception {
    List<String> said = run(Map.of());
    assertThat(said).hasSize(5);
    String alone = said.get(0); // OpenBLAS does not count processors as the JVM does
    assertThat(said).containsExactly(alone, "threads 1", "threads 1", alone, alone);
  }

  @Test
  @Timeout(120)
  void whatTheEnvironmentSaysStays() throws Exception {
    assertThat(run(Map.of("OPENBLAS_NUM_THREADS", "2"))).hasSize(5).containsOnly("threads 2");
  }
}
