package dev.weft.tensor.op;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.tensor.DType;
import dev.weft.tensor.Generator;
import dev.weft.tensor.TensorScope;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** What every entry of the catalogue must have; names those that lack it. */
class CatalogueTest {
  @Test
  void everyOperatorHasACheckedGradientOrSaysThatItHasNone() {
    Set<String> checked = new TreeSet<>();
    try (TensorScope scope = TensorScope.open();
        Dispatcher.Installed recorder =
            Dispatcher.install(
                call -> {
                  if (call.depth() == 0) {
                    checked.add(call.op().name());
                  }
                  return call.proceed();
                })) {
      GradientTest.cases().forEach(GradientTest.Case::run);
      assertThat(scope.size()).isPositive();
      assertThat(recorder).isNotNull();
    }
    Set<String> lacking = new TreeSet<>();
    for (Map.Entry<String, Op> e : Catalogue.load().entrySet()) {
      Op op = e.getValue();
      if (op.isDifferentiable() != (op.backward() != null)) {
        lacking.add(op + ": neither a backward formula nor notDifferentiable(), or both");
      } else if (op.isDifferentiable()
          && !op.name().equals("to_device") // CudaRuntimeTest has it: there is one device here
          && !checked.contains(op.name())) {
        lacking.add(op + ": no case in GradientTest");
      }
    }
    assertThat(lacking).isEmpty();
  }

  @Test
  void functionsAndInPlaceOperatorsHaveACpuKernel() {
    Set<String> lacking = new TreeSet<>();
    for (Op op : Catalogue.load().values()) {
      boolean computes = op.form() == Op.Form.FUNCTION || op.form() == Op.Form.IN_PLACE;
      if (computes && op.kernel("cpu") == null) {
        lacking.add(op.name());
      }
    }
    assertThat(lacking).isEmpty();
  }

  @Test
  void inPlaceOperatorsEndInAnUnderscoreAndOthersDoNot() {
    for (Op op : Catalogue.load().values()) {
      assertThat(op.name().endsWith("_")).as(op.name()).isEqualTo(op.form() == Op.Form.IN_PLACE);
    }
  }

  @Test
  void dropoutScalesItsGradientByTheSameMask() {
    var x = Random.rand(new Generator(1), DType.FLOAT64, 20, 30).requiresGrad(true);
    var y = Random.dropout(x, 0.25, true, new Generator(2));
    y.backward(Creation.onesLike(y));
    double[] in = x.toDoubleArray();
    double[] out = y.toDoubleArray();
    assertThat(x.grad()).isNotNull();
    double[] grad = x.grad().toDoubleArray();
    int kept = 0;
    for (int i = 0; i < in.length; i++) {
      assertThat(grad[i]).isIn(0.0, 1 / 0.75);
      assertThat(out[i]).isEqualTo(in[i] * grad[i]);
      kept += grad[i] != 0 ? 1 : 0;
    }
    assertThat(kept).isBetween(400, 500);
  }
}
