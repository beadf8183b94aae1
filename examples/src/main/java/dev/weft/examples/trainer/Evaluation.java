package dev.weft.examples.trainer;

import dev.weft.c10d.ProcessGroup;
import dev.weft.c10d.Work;
import dev.weft.examples.reference.DecoderConfig;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Forward passes without gradients through the stages of a {@link ParallelModel}. */
final class Evaluation {
  private final ParallelModel model;
  private final ProcessGroup pipeline;
  private final Device device;
  private final long width;
  private final long positions;

  Evaluation(ParallelModel model, DecoderConfig config, DeviceMesh mesh, ParallelOptions options) {
    this.model = model;
    this.pipeline = mesh.getGroup("pp");
    this.device = options.device();
    this.width = config.dModel();
    // What stages pass on, with sequence parallelism this rank's share of it.
    this.positions = options.sequenceParallel ? config.seq() / mesh.size("tp") : config.seq();
  }

  /** The mean loss of some rows on the rank with the last stage, null elsewhere. */
  @Nullable Double loss(TokenBatches.Batch batch) {
    try (TensorScope scope = TensorScope.open()) {
      return Autograd.noGrad(() -> forward(batch.inputs().to(device), batch.targets().to(device)));
    }
  }

  private @Nullable Double forward(Tensor inputs, Tensor targets) {
    int ranks = pipeline.size();
    List<Module> stages = model.stages();
    int last = ranks * stages.size() - 1;
    List<Work> sends = new ArrayList<>();
    @Nullable Tensor passed = null;
    @Nullable Double loss = null;
    for (int i = 0; i < stages.size(); i++) {
      int stage = pipeline.rank() + i * ranks;
      Tensor x = inputs;
      if (stage > 0) {
        x = ranks == 1 ? Objects.requireNonNull(passed) : received(stage, inputs.size(0));
      }
      Tensor y = stages.get(i).call(x);
      if (stage == last) {
        loss = ParallelModel.loss(y, targets).item();
      } else if (ranks == 1) {
        passed = y;
      } else {
        sends.add(pipeline.isend(y, (stage + 1) % ranks, stage + 1));
      }
    }
    sends.forEach(Work::await);
    return loss;
  }

  private Tensor received(int stage, long rows) {
    Tensor x = Tensors.empty(DType.FLOAT32, device, rows, positions, width);
    Work unused = pipeline.recv(x, (stage - 1) % pipeline.size(), stage);
    return x;
  }
}
