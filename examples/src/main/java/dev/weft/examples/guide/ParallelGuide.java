package dev.weft.examples.guide;

import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;
import static dev.weft.parallel.FullySharded.fullyShard;

import dev.weft.c10d.Distributed;
import dev.weft.dtensor.DTensor;
import dev.weft.nn.DeferredInit;
import dev.weft.nn.Function;
import dev.weft.nn.Linear;
import dev.weft.nn.Recompute;
import dev.weft.nn.Sequential;
import dev.weft.optim.AdamW;
import dev.weft.optim.Clipping;
import dev.weft.parallel.CommunicationHook;
import dev.weft.parallel.Ddp;
import dev.weft.parallel.DdpOptions;
import dev.weft.parallel.FullyShardedPolicy;
import dev.weft.parallel.GradientScaler;
import dev.weft.parallel.LocalSgd;
import dev.weft.parallel.pipeline.Pipeline;
import dev.weft.parallel.pipeline.Schedule;
import dev.weft.parallel.pipeline.Skip;
import dev.weft.parallel.pipeline.Stages;
import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Losses;
import dev.weft.tensor.op.Random;
import java.util.List;

/** The programs of the chapter on data, sharded and pipeline parallelism. */
final class ParallelGuide {
  private ParallelGuide() {}

  /** Two blocks of two layers. */
  private static Sequential model() {
    Generator generator = new Generator(1);
    return new Sequential(block(generator), block(generator));
  }

  private static Sequential block(Generator generator) {
    return new Sequential(
        new Linear(8, 32, true, generator),
        new Function(Activations::silu),
        new Linear(32, 8, true, generator));
  }

  /** The rows of a batch of eight that belong to one of so many parts. */
  private static Tensor rows(int part, int parts) {
    Tensor all = Random.randn(new Generator(2), DType.FLOAT32, 8, 8);
    return all.slice(0, part * 8L / parts, (part + 1) * 8L / parts);
  }

  private static Tensor loss(Tensor output, Tensor target) {
    return Losses.mseLoss(output, target, "mean");
  }

  @Ranks(2)
  static void replicas() {
    var mesh = initDeviceMesh("cpu", dim("dp", 2));
    var ddp = Ddp.of(model(), mesh);
    var optimizer = AdamW.over(ddp.model().parameters()).learningRate(0.01).build();
    for (int step = 0; step < 2; step++) {
      try (var scope = TensorScope.open()) {
        Tensor x = rows(mesh.getLocalRank(), 2); // other rows on each rank
        loss(ddp.call(x), x).backward(); // gradients are averaged meanwhile
        double norm = Clipping.clipGradNorm(ddp.model().parameters(), 1.0);
        optimizer.step();
        optimizer.zeroGrad();
        if (Distributed.rank() == 0) {
          System.out.printf("norm %.4f%n", norm);
        }
      }
    }
  }

  @Ranks(2)
  static void accumulation() {
    var mesh = initDeviceMesh("cpu", dim("dp", 2));
    var options = DdpOptions.DEFAULT.withHook(CommunicationHook.compress(DType.BFLOAT16));
    var ddp = Ddp.of(model(), mesh, options);
    Tensor x = rows(mesh.getLocalRank(), 2);
    try (var open = ddp.noSync()) {
      loss(ddp.call(x), x).backward(); // stays on this rank
    }
    loss(ddp.call(x), x).backward(); // averages what both have given
    double norm = Clipping.gradNorm(ddp.model().parameters());
    if (Distributed.rank() == 0) {
      System.out.printf("norm %.2f%n", norm);
    }
  }

  @Ranks(4)
  static void sharded() {
    var mesh = initDeviceMesh("cpu", dim("replicate", 2), dim("shard", 2));
    var model = model();
    var policy = FullyShardedPolicy.DEFAULT;
    for (var block : model.children().values()) {
      fullyShard(block, mesh, policy);
    }
    fullyShard(model, mesh, policy.withReshardAfterForward(false));
    var optimizer = AdamW.over(model.parameters()).learningRate(0.01).build();
    for (int step = 0; step < 2; step++) {
      try (var scope = TensorScope.open()) {
        Tensor x = rows(Distributed.rank(), 4);
        loss(model.call(x), x).backward();
        double norm = Clipping.clipGradNorm(model.parameters(), 1.0); // over all shards
        optimizer.step();
        optimizer.zeroGrad();
        if (Distributed.rank() == 0) {
          System.out.printf("norm %.4f%n", norm);
        }
      }
    }
    if (Distributed.rank() == 0) {
      var weight = (DTensor) model.parameter("0.0.weight");
      System.out.println(weight.placements() + ", " + weight.toLocal().size(0) + " of 32 rows");
    }
  }

  @Ranks(4)
  static void islands() {
    var mesh = initDeviceMesh("cpu", dim("island", 2), dim("dp", 2));
    var ddp = Ddp.of(model(), mesh.get("dp")); // averages within the island, in every step
    var parameters = ddp.model().parameters();
    var inner = AdamW.over(parameters).learningRate(0.01).build();
    var outer = LocalSgd.diLoCo(parameters, mesh.get("island"), 3);
    for (int step = 0; step < 6; step++) {
      try (var scope = TensorScope.open()) {
        Tensor x = rows(Distributed.rank(), 4);
        loss(ddp.call(x), x).backward();
        inner.step();
        inner.zeroGrad();
        if (outer.step() && Distributed.rank() == 0) { // the only use of the slow link
          System.out.printf("agreed after step %d%n", step);
        }
      }
    }
  }

  @Ranks(2)
  static void deferred() {
    Sequential model;
    try (var open = DeferredInit.open()) {
      model = model(); // takes no memory
    }
    fullyShard(model, initDeviceMesh("cpu", dim("dp", 2)));
    if (Distributed.rank() == 0) {
      var weight = (DTensor) model.parameter("0.0.weight");
      System.out.println(weight.device() + ", " + weight.toLocal().size(0) + " of 32 rows");
    }
  }

  @Ranks(2)
  static void recomputed() {
    var mesh = initDeviceMesh("cpu", dim("dp", 2));
    var model = model();
    for (var block : model.children().values()) {
      Recompute.of(block); // keeps the block's input, and runs it again in backward
      fullyShard(block, mesh);
    }
    Tensor x = rows(mesh.getLocalRank(), 2);
    Tensor y = model.call(x);
    Tensor z = Recompute.checkpoint(t -> Activations.silu(t).mul(t), y); // any piece
    loss(z, x).backward();
    double norm = Clipping.gradNorm(model.parameters());
    if (Distributed.rank() == 0) {
      System.out.printf("norm %.4f%n", norm);
    }
  }

  @Ranks(4)
  static void stages() {
    var mesh = initDeviceMesh("cpu", dim("dp", 2), dim("pp", 2));
    var stage = Stages.split(model(), List.of("0", "1"), List.of("1")).get(mesh.coordinate(1));
    var ddp = Ddp.of(stage, mesh.get("dp"));
    var pipeline =
        Pipeline.of(mesh.get("pp"), List.of(stage), Schedule.ONE_F_ONE_B, 2, ParallelGuide::loss)
            .withSync(0, ddp);
    Tensor x = rows(mesh.coordinate(0), 2);
    Tensor loss = pipeline.step(x, x); // leaves gradients in the parameters
    if (loss != null && mesh.coordinate(0) == 0) { // the last stage knows it
      System.out.printf("loss %.4f%n", loss.item());
    }
  }

  @Ranks(3)
  static void skips() {
    var mesh = initDeviceMesh("cpu", dim("pp", 3));
    var residual = Skip.of("residual");
    var stage =
        switch (mesh.getLocalRank()) {
          case 0 -> new Sequential(block(new Generator(1)), new Function(residual::stash));
          case 1 -> block(new Generator(2));
          default -> new Sequential(new Function(x -> x.add(residual.pop())));
        };
    var pipeline =
        Pipeline.of(mesh, List.of(stage), Schedule.ZB_H1, 3, ParallelGuide::loss)
            .withSkip("residual", 0, 2) // from the first stage to the last
            .withUnevenMicrobatches(); // eight rows as 3, 3 and 2
    Tensor loss = pipeline.step(rows(0, 1), rows(0, 1));
    if (loss != null) {
      System.out.printf("loss %.4f%n", loss.item());
    }
  }

  @Ranks(0)
  static void schedules() {
    for (var schedule : List.of(Schedule.GPIPE, Schedule.ONE_F_ONE_B, Schedule.ZB_H1)) {
      var timeline = schedule.timeline(4, 1, 8);
      System.out.printf(
          "%-12s bubble %.3f, activations of %d microbatches%n",
          schedule, timeline.bubble(), timeline.activations(0));
    }
    var interleaved = Schedule.INTERLEAVED.timeline(4, 2, 8);
    System.out.printf("%-12s bubble %.3f%n", Schedule.INTERLEAVED, interleaved.bubble());
    System.out.println();
    System.out.println(Schedule.ONE_F_ONE_B.timeline(3, 1, 4));
    System.out.print(Schedule.ZB_H1.timeline(3, 1, 4));
  }

  @Ranks(2)
  static void float16() {
    var mesh = initDeviceMesh("cpu", dim("dp", 2));
    var model = model();
    fullyShard(
        model,
        mesh,
        FullyShardedPolicy.DEFAULT
            .withMixedPrecision(DType.FLOAT16, DType.FLOAT32)
            .withOutputDtype(DType.FLOAT32));
    var optimizer = AdamW.over(model.parameters()).learningRate(0.01).build();
    var scaler = GradientScaler.of();
    Tensor x = rows(mesh.getLocalRank(), 2);
    scaler.scale(loss(model.call(x), x)).backward();
    double norm = scaler.unscale(optimizer);
    boolean updated = scaler.step(optimizer);
    scaler.update();
    if (Distributed.rank() == 0) {
      System.out.printf("norm %.2f, updated %s, scale %.0f%n", norm, updated, scaler.scale());
    }
  }
}
