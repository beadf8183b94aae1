package dev.weft.dtensor.tp;

import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Module;

/** What is done to a module to make it parallel. */
public interface ParallelStyle {
  /**
   * Changes a module in place: its parameters, and hooks on its inputs and output.
   *
   * @param root the model; parameters are replaced in it, so that ties survive
   * @param path where the module is in the model; empty for the model itself
   * @param module the module
   * @param mesh one dimension
   */
  void apply(Module root, String path, Module module, DeviceMesh mesh);
}
