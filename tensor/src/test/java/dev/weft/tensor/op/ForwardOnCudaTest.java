package dev.weft.tensor.op;

import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.cuda.Cuda;
import dev.weft.tensor.cuda.CudaTest;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.opentest4j.TestAbortedException;

/** The cases of {@link ForwardTest} on a GPU: values, shapes, dtypes and refusals. */
@CudaTest
class ForwardOnCudaTest {
  private static final Device GPU = Device.cuda(0);
  // float32 to 1e-5: functions of the device are good to a few units of the last place.
  private static final double TOLERANCE = 5;

  @TestFactory
  Stream<DynamicTest> agreesWithPyTorch() {
    return tests(t -> t.to(GPU));
  }

  /** P28, P59: no operator depends on how its inputs lie in memory. */
  @TestFactory
  Stream<DynamicTest> agreesForInputsOfAnotherLayout() {
    return tests(t -> ForwardCases.strided(t, GPU));
  }

  private static Stream<DynamicTest> tests(UnaryOperator<Tensor> layout) {
    return ForwardTest.tests(layout, ForwardOnCudaTest::back, TOLERANCE)
        .map(t -> DynamicTest.dynamicTest(t.getDisplayName(), () -> run(t)));
  }

  private static void run(DynamicTest test) throws Throwable {
    try {
      test.getExecutable().execute();
    } catch (UnsupportedOperationException e) {
      String message = String.valueOf(e.getMessage());
      for (String name : WithoutCudaKernel.reasons().keySet()) {
        if (message.startsWith("operator '" + name + "' has no kernel")) {
          throw new TestAbortedException(message, e);
        }
      }
      throw e;
    }
  }

  private static Tensor back(Tensor result) {
    // Positions out of range are refused where the host waits.
    Cuda.synchronize();
    return result.to(Device.CPU);
  }
}
