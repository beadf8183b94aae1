package dev.weft.examples.guide;

import dev.weft.examples.reference.Gpt;
import dev.weft.examples.reference.GptConfig;
import dev.weft.nn.Module;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.cuda.Cuda;
import org.nd4j.linalg.factory.Nd4j;

/** The programs of {@code docs/cuda.md}; compiled only, as they need a GPU. */
final class CudaGuide {
  private CudaGuide() {}

  static void first() {
    Cuda.require(); // says what is missing where something is
    Device gpu = Device.cuda(0);
    Tensor x = Tensor.of(Nd4j.ones(4, 4)).to(gpu); // an INDArray, copied to the device
    Tensor y = x.matmul(x.t()).softmax(-1); // in the order of the current stream; the host goes on
    float[] values = y.toFloatArray(); // waits, and copies back
    Module model = new Gpt(GptConfig.reference()).to(gpu); // before the optimiser is made
    System.out.println(values.length + " values, " + model.parameters().size() + " parameters");
  }
}
