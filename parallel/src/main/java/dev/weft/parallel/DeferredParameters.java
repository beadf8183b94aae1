package dev.weft.parallel;

import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.DTensor.FromLocal;
import dev.weft.nn.DeferredInit;
import dev.weft.nn.Module;
import dev.weft.tensor.Device;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;

/** Gives memory and values to what was made under {@link DeferredInit}. */
public final class DeferredParameters {
  private DeferredParameters() {}

  /**
   * Makes all parameters of a module that are still on device meta: whole ones, or this rank's part
   * of distributed ones. {@link FullySharded#fullyShard} does so itself for those that it takes.
   * Tied parameters stay tied. Ranks must have made the module from the same random numbers.
   *
   * @throws IllegalArgumentException if a parameter is on device meta without a recipe
   */
  public static void materialize(Module module, Device device) {
    module
        .namedParameters()
        .forEach(
            (path, p) -> {
              // A tied one has been replaced under its first path.
              if (module.parameter(path) != p || !p.device().isMeta()) {
                return;
              }
              if (!DeferredInit.isDeferred(p)) {
                throw new IllegalArgumentException(
                    "materialize: parameter '"
                        + path
                        + "' is on device meta and does not know its values; expected it to be made"
                        + " under DeferredInit");
              }
              Tensor made = TensorScope.outside(() -> empty(p, device));
              DeferredInit.fill(p, made, DeferredInit.position(p));
              Tensor unused = module.replaceParameter(path, made);
            });
  }

  private static Tensor empty(Tensor like, Device device) {
    StridedTensor part = Tensors.empty(like.dtype(), device, Parts.of(like).shape());
    if (!(like instanceof DTensor d)) {
      return part;
    }
    return Autograd.noGrad(
        () ->
            DTensor.fromLocal(
                part,
                d.mesh(),
                d.placements(),
                FromLocal.DEFAULT.withShape(d.shape(), d.spec().strides())));
  }
}
