package dev.weft.examples.guide;

import static org.assertj.core.api.Assertions.assertThat;

import dev.weft.c10d.LocalWorld;
import dev.weft.examples.guide.DocPages.Kind;
import dev.weft.examples.guide.DocPages.Program;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.Timeout;

/**
 * The programs in the documentation are those of the examples, and do what the text says. A block
 * of Java stands under {@code <!-- from Class.method -->} or, with a whole file, {@code <!-- from
 * Class -->}; one of text under {@code <!-- output -->} is what the program before it prints, one
 * under {@code <!-- message of Class.method -->} what that program throws.
 */
@Timeout(180)
class GuideTest {
  @TestFactory
  Stream<DynamicTest> everyProgramIsTheOneThatRunsAndDoesWhatThePageSays() throws IOException {
    return DocPages.programs().stream()
        .map(
            p ->
                DynamicTest.dynamicTest(
                    p.page() + ": " + p.name(),
                    () -> {
                      if (p.kind() != Kind.MESSAGE) {
                        assertThat(p.code()).isEqualTo(DocPages.code(p.type(), p.method()));
                      }
                      if (p.kind() != Kind.COMPILED) {
                        assertThat(run(p)).isEqualTo(p.text());
                      }
                    }));
  }

  @Test
  void noProgramIsLeftOut() throws Exception {
    Set<String> run = new TreeSet<>();
    for (Program p : DocPages.programs()) {
      if (p.kind() != Kind.COMPILED) {
        run.add(p.name());
      }
    }
    List<String> toRun = new ArrayList<>();
    for (Class<?> type : DocPages.types("guide")) {
      for (Method m : type.getDeclaredMethods()) {
        if (m.isAnnotationPresent(Ranks.class)) {
          toRun.add(type.getSimpleName() + "." + m.getName());
        }
      }
    }
    for (Class<?> type : DocPages.types("recipes")) {
      toRun.add(type.getSimpleName());
    }
    assertThat(run).containsExactlyInAnyOrderElementsOf(toRun);
  }

  private static String run(Program p) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    PrintStream before = System.out;
    System.setOut(new PrintStream(bytes, true, StandardCharsets.UTF_8));
    try {
      runProgram(p);
    } catch (Exception e) {
      Throwable thrown = e instanceof InvocationTargetException ? e.getCause() : e;
      if (p.kind() != Kind.MESSAGE) {
        throw new AssertionError(p.name() + " failed", thrown);
      }
      String message = thrown.getMessage().replaceAll("\\S*/checkpoints\\d+/", ".../");
      return thrown.getClass().getSimpleName() + ": " + message + "\n";
    } finally {
      System.setOut(before);
    }
    assertThat(p.kind()).as("%s threw nothing", p.name()).isEqualTo(Kind.OUTPUT);
    return bytes.toString(StandardCharsets.UTF_8);
  }

  private static void runProgram(Program p) throws Exception {
    Class<?> type = DocPages.type(p.type());
    if (p.method().isEmpty()) {
      type.getMethod("main", String[].class).invoke(null, (Object) new String[0]);
      return;
    }
    Method m = type.getDeclaredMethod(p.method());
    m.setAccessible(true);
    int ranks = m.getAnnotation(Ranks.class).value();
    if (ranks == 0) {
      m.invoke(null);
    } else {
      LocalWorld.run(ranks, rank -> call(m));
    }
  }

  /** Throws what the method throws. */
  private static void call(Method m) throws Exception {
    try {
      m.invoke(null);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof Exception cause) {
        throw cause;
      }
      throw e;
    }
  }
}
