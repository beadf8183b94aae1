package dev.weft.tensor.op;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** Every operator that computes has a CUDA kernel, or is listed with the reason; needs no GPU. */
class CudaCoverageTest {
  @Test
  void functionsAndInPlaceOperatorsHaveACudaKernelOrAReason() {
    Map<String, String> reasons = WithoutCudaKernel.reasons();
    Set<String> lacking = new TreeSet<>();
    Set<String> listed = new TreeSet<>();
    for (Op op : Catalogue.load().values()) {
      boolean computes = op.form() == Op.Form.FUNCTION || op.form() == Op.Form.IN_PLACE;
      // Other tests of this module may have put operators of their own into the catalogue.
      if (!computes || op.name().startsWith("test.") || op.kernel("cuda") != null) {
        continue;
      }
      (reasons.containsKey(op.name()) ? listed : lacking).add(op.name());
    }
    assertThat(lacking).as("operators without a CUDA kernel and without a reason").isEmpty();
    assertThat(reasons.keySet()).as("entries that have a kernel or do not exist").isEqualTo(listed);
  }
}
