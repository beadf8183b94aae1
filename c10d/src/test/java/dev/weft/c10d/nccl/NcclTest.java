package dev.weft.c10d.nccl;

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
 * A test class that needs a GPU and NCCL: tagged {@code cuda}, skipped with the reason where they
 * are missing.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@Tag("cuda")
@ExtendWith(NcclTest.NeedsNccl.class)
@interface NcclTest {
  /** Skips where NCCL is not available. */
  final class NeedsNccl implements ExecutionCondition {
    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
      return Nccl.isAvailable()
          ? ConditionEvaluationResult.enabled("NCCL " + Nccl.version())
          : ConditionEvaluationResult.disabled("NCCL: " + Nccl.unavailableReason());
    }
  }
}
