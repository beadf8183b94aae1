package dev.weft.examples.recipes;

import static dev.weft.dtensor.DTensor.distributeTensor;
import static dev.weft.dtensor.Placements.replicate;
import static dev.weft.dtensor.Placements.shard;
import static dev.weft.mesh.DeviceMesh.dim;
import static dev.weft.mesh.DeviceMesh.initDeviceMesh;

import dev.weft.c10d.LocalWorld;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Sharding;
import dev.weft.dtensor.Sharding.Row;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorSpec;
import dev.weft.tensor.cpu.Elementwise;
import dev.weft.tensor.cpu.Loops;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Dispatcher;
import dev.weft.tensor.op.Op;
import java.util.Objects;
import java.util.stream.IntStream;

/** An operator of one's own: kernel, gradient, and how it runs on sharded tensors. */
public final class OwnOperator {
  private static final Loops LOOPS = Loops.of((double x) -> x > 0 ? x * x : 0);

  /** The square of a rectified value, as Primer has it (So et al., 2021). */
  private static final Op SQUARED_RELU =
      Op.function(
              "recipes.squared_relu",
              (in, attrs) -> TensorSpec.one(in[0].shape(), in[0].dtype()),
              (in, out, attrs) -> Elementwise.run(LOOPS, out[0].dtype(), in, out[0], attrs))
          .gradient(
              Op.Saves.INPUTS,
              (saved, grads) ->
                  new Tensor[] {Activations.relu(saved.input(0)).mul(2).mul(grads[0])});

  static {
    // Cut along any dimension, each rank works on its part; partial sums have to be summed first.
    Sharding.register(
        SQUARED_RELU.name(),
        call ->
            IntStream.range(0, call.ndim(0)).mapToObj(d -> Row.of(shard(d), shard(d))).toList());
  }

  private OwnOperator() {}

  /** Runs it on two threads. */
  public static void main(String[] args) {
    LocalWorld.run(
        2,
        rank -> {
          var mesh = initDeviceMesh("cpu", dim("tp", 2));
          Tensor values = Tensor.of(new float[] {-1, 2, 3, -4}, 4);
          DTensor x = distributeTensor(values, mesh, shard(0));
          x.requiresGrad(true);
          var y = (DTensor) Dispatcher.call(SQUARED_RELU, Attrs.NONE, x);
          y.sum().backward();
          var gradient = (DTensor) Objects.requireNonNull(x.grad());
          String text =
              y.placements() + " " + gradient.redistribute(replicate()).toLocal().to(DType.INT32);
          if (rank == 0) {
            System.out.println(text);
          }
        });
  }
}
