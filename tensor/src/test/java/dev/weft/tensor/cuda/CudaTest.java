package dev.weft.tensor.cuda;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A test class that needs a GPU: tagged {@code cuda}, skipped with the reason where there is none.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Tag("cuda")
@ExtendWith(CudaTest.NeedsCuda.class)
public @interface CudaTest {
  /** Skips where CUDA is not available. */
  final class NeedsCuda implements ExecutionCondition {
    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
      return Cuda.isAvailable()
          ? ConditionEvaluationResult.enabled("there is a GPU")
          : ConditionEvaluationResult.disabled("CUDA: " + Cuda.unavailableReason());
    }
  }
}
