package dev.weft.examples.trainer;

import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static dev.weft.dtensor.tp.Styles.colwise;
import static dev.weft.dtensor.tp.Styles.prepareInput;
import static dev.weft.dtensor.tp.Styles.rowwise;
import static dev.weft.dtensor.tp.Styles.sequence;

import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.tp.LossParallel;
import dev.weft.dtensor.tp.ParallelStyle;
import dev.weft.dtensor.tp.Parallelize;
import dev.weft.dtensor.tp.Styles.Input;
import dev.weft.examples.reference.DecoderConfig;
import dev.weft.examples.reference.Gpt;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;
import dev.weft.parallel.Ddp;
import dev.weft.parallel.FullySharded;
import dev.weft.parallel.FullyShardedPolicy;
import dev.weft.parallel.GradientSync;
import dev.weft.parallel.pipeline.Pipeline;
import dev.weft.parallel.pipeline.Stages;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Views;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * This rank's part of the model: its stages of the pipeline, cut by tensor parallelism, then
 * sharded or replicated. Tensor parallelism comes first, since shards are cut from what a
 * tensor-parallel rank has. Used by the thread that acts for the rank.
 */
final class ParallelModel {
  private final DecoderConfig config;
  private final ParallelDims dims;
  private final DeviceMesh mesh;
  private final List<Module> stages = new ArrayList<>();
  private final Pipeline pipeline;

  /** Makes the part; called on all ranks alike. */
  ParallelModel(DecoderConfig config, ParallelDims dims, DeviceMesh mesh, ParallelOptions options) {
    this.config = config;
    this.dims = dims;
    this.mesh = mesh;
    List<GradientSync> syncs = new ArrayList<>();
    for (Module stage : ownStages(options)) {
      Module unused = stage.to(options.device());
      if (dims.tp() > 1) {
        unused =
            Parallelize.parallelizeModule(
                stage, mesh.get("tp"), plan(stage, options.sequenceParallel));
      }
      GradientSync sync = spread(stage);
      if (sync != null) {
        syncs.add(sync);
      }
      stages.add(stage);
    }
    this.pipeline =
        Pipeline.of(
            mesh.get("pp"),
            stages,
            options.schedule(),
            options.microbatches(dims),
            ParallelModel::loss);
    for (int i = 0; i < syncs.size(); i++) {
      Pipeline unused = pipeline.withSync(i, syncs.get(i));
    }
  }

  /** The stages of this rank: of all stages every pp-th. */
  private List<Module> ownStages(ParallelOptions options) {
    int count = dims.pp() * options.stagesPerRank;
    List<String> starts = new ArrayList<>();
    int layer = 0;
    for (int s = 0; s < count - 1; s++) {
      // As even as possible, the first ones with one more.
      layer += config.nLayers() / count + (s < config.nLayers() % count ? 1 : 0);
      starts.add("layers." + layer);
    }
    List<Module> all =
        Stages.split(new Gpt(config), List.of("tok_emb", "layers.*", "norm", "output"), starts);
    List<Module> own = new ArrayList<>();
    for (int s = 0; s < count; s++) {
      if (s % dims.pp() == mesh.getLocalRank("pp")) {
        own.add(all.get(s));
      } else {
        all.get(s).parameters().forEach(Tensor::close);
      }
    }
    return own;
  }

  /** How the layers of a stage are cut, as in Megatron-LM (Shoeybi et al., arXiv:1909.08053). */
  private Map<String, ParallelStyle> plan(Module stage, boolean sequenceParallel) {
    Map<String, ParallelStyle> all = new LinkedHashMap<>();
    all.put("tok_emb", sequenceParallel ? rowwise().output(shard(1)) : rowwise());
    all.put("layers.*.attn.wq", colwise().heads(config.nHeads()));
    all.put("layers.*.attn.w[kv]", colwise().heads(config.nKvHeads()));
    all.put("layers.*.attn.wo", sequenceParallel ? rowwise().output(shard(1)) : rowwise());
    all.put("layers.*.ffn.w[13]", colwise().localOutput(false));
    all.put("layers.*.ffn.w2", sequenceParallel ? rowwise().output(shard(1)) : rowwise());
    all.put(
        "output",
        sequenceParallel
            ? colwise().input(shard(1)).localOutput(false)
            : colwise().localOutput(false));
    // One input for all layers that read it: their gradients are added up before they are reduced.
    Input input = prepareInput(sequenceParallel ? shard(1) : replicate(), replicate());
    all.put("layers.*.attn", input);
    all.put("layers.*.ffn", input);
    if (sequenceParallel) {
      all.put("layers.*.*_norm", sequence());
      all.put("norm", sequence());
    }
    all.keySet().removeIf(path -> !stage.children().containsKey(path.split("\\.", 2)[0]));
    return all;
  }

  /** Shards or replicates a stage; null where a rank is alone. */
  private @Nullable GradientSync spread(Module stage) {
    if (dims.fsdp() > 1) {
      DeviceMesh over = dims.dp() > 1 ? mesh.get("dp", "fsdp") : mesh.get("fsdp");
      if (stage.children().containsKey("layers")) {
        for (Module block : stage.module("layers").children().values()) {
          FullySharded unused = FullySharded.fullyShard(block, over);
        }
      }
      return FullySharded.fullyShard(
          stage, over, FullyShardedPolicy.DEFAULT.withReshardAfterForward(false));
    }
    return dims.dp() > 1 ? Ddp.of(stage, mesh.get("dp")) : null;
  }

  /**
   * The mean cross-entropy of a microbatch. Logits whose classes are cut over ranks stay so.
   *
   * @param logits [rows, seq, vocab]
   * @param targets int64 [rows, seq]
   */
  static Tensor loss(Tensor logits, Tensor targets) {
    Tensor flat = Views.reshape(logits, -1, logits.size(-1));
    Tensor labels = Views.reshape(targets, -1);
    if (!(flat instanceof DTensor cut)) {
      return Losses.crossEntropy(flat, labels);
    }
    DTensor placed = DTensor.fromLocal(labels, cut.mesh(), replicate());
    Tensor loss = LossParallel.with(() -> Losses.crossEntropy(cut, placed));
    return ((DTensor) loss).redistribute(replicate()).toLocal();
  }

  /**
   * Runs a replica's rows forward and backward, and leaves the gradients of the mean loss over all
   * replicas in the parameters.
   *
   * @return the mean loss of the rows on the rank with the last stage, null elsewhere
   */
  @Nullable Tensor step(Tensor inputs, Tensor targets) {
    return pipeline.step(inputs, targets);
  }

  /** This rank's stages, in order: of S stages on p ranks, rank, rank + p, ... */
  List<Module> stages() {
    return stages;
  }

  /** This rank's parameters by their path in the whole model. */
  Map<String, Tensor> namedParameters() {
    Map<String, Tensor> all = new LinkedHashMap<>();
    stages.forEach(s -> all.putAll(s.namedParameters()));
    return all;
  }

  /** The same without tied ones twice. */
  List<Tensor> parameters() {
    List<Tensor> all = new ArrayList<>();
    stages.forEach(s -> all.addAll(s.parameters()));
    return all;
  }
}
