package dev.weft.parallel;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.SmallModels.assertClose;
import static dev.weft.parallel.SmallModels.blocks;
import static dev.weft.parallel.SmallModels.loss;
import static dev.weft.parallel.SmallModels.rows;
import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.LocalWorld;
import dev.weft.c10d.nccl.Nccl;
import dev.weft.dtensor.DTensor;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.nn.Sequential;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("cuda")
class CpuOffloadOnCudaTest {
  /** Parts, gradients and the optimiser's state on the host, the computation on the GPU. */
  @Test
  void theRunIsThatWithoutOffload() {
    Assumptions.assumeTrue(Nccl.isAvailable(), "NCCL is not available");
    List<List<float[]>> runs = new ArrayList<>();
    for (boolean offload : new boolean[] {false, true}) {
      runs.add(
          LocalWorld.of(1)
              .backend("cpu:host,cuda:nccl")
              .devices(rank -> Device.cuda(0))
              .call(rank -> train(offload))
              .get(0));
    }
    assertClose(runs.get(1), runs.get(0));
  }

  private static List<float[]> train(boolean offload) {
    DeviceMesh mesh = initDeviceMesh("cuda", dim("dp", 1));
    Sequential m = blocks(3, 5, 7);
    Module unused = m.to(Device.cuda(0));
    FullyShardedPolicy policy = FullyShardedPolicy.DEFAULT.withCpuOffload(offload);
    for (Module block : m.children().values()) {
      FullySharded done = FullySharded.fullyShard(block, mesh, policy);
    }
    FullySharded done = FullySharded.fullyShard(m, mesh, policy);
    Device home = offload ? Device.CPU : Device.cuda(0);
    try (AdamW optimizer = AdamW.over(m.parameters()).learningRate(0.01).build()) {
      for (int step = 0; step < 3; step++) {
        try (TensorScope scope = TensorScope.open()) {
          Tensor x = rows(step, step + 4, 5).to(Device.cuda(0));
          loss(m.call(x)).backward();
          assertThat(m.parameters())
              .allMatch(p -> ((DTensor) p).toLocal().device().equals(home))
              .allMatch(p -> ((DTensor) p.grad()).toLocal().device().equals(home));
          double norm = Clipping.clipGradNorm(m.parameters(), 1);
          assertThat(norm).isPositive();
          optimizer.step();
          optimizer.zeroGrad();
        }
      }
    }
    return SmallModels.parameters(m);
  }
}
