package dev.weft.cli;

import static com.tngtech.archunit.library.Architectures.layeredArchitecture;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** Dependencies point one way. */
@AnalyzeClasses(packages = "dev.weft", importOptions = ImportOption.DoNotIncludeTests.class)
class LayersTest {
  @ArchTest
  static final ArchRule LAYERS =
      layeredArchitecture()
          .consideringOnlyDependenciesInLayers()
          .layer("tensor")
          .definedBy("dev.weft.tensor..", "dev.weft.nn..", "dev.weft.optim..")
          .layer("c10d")
          .definedBy("dev.weft.c10d..")
          .layer("funcol")
          .definedBy("dev.weft.funcol..")
          .layer("mesh")
          .definedBy("dev.weft.mesh..")
          .layer("dtensor")
          .definedBy("dev.weft.dtensor..")
          .layer("parallel")
          .definedBy("dev.weft.parallel..")
          .layer("profiler")
          .definedBy("dev.weft.profiler..")
          .layer("conformance")
          .definedBy("dev.weft.conformance..")
          .layer("examples")
          .definedBy("dev.weft.examples..")
          .layer("bench")
          .definedBy("dev.weft.bench..")
          .layer("cli")
          .definedBy("dev.weft.cli..")
          .whereLayer("cli")
          .mayNotBeAccessedByAnyLayer()
          .whereLayer("bench")
          .mayOnlyBeAccessedByLayers("cli")
          .whereLayer("examples")
          .mayOnlyBeAccessedByLayers("bench", "cli") // the training benchmark trains the decoder
          .whereLayer("conformance")
          .mayOnlyBeAccessedByLayers("cli")
          .whereLayer("profiler")
          .mayOnlyBeAccessedByLayers("conformance", "examples", "bench", "cli")
          .whereLayer("parallel")
          .mayOnlyBeAccessedByLayers("conformance", "examples", "bench", "cli")
          .whereLayer("dtensor")
          .mayOnlyBeAccessedByLayers(
              "parallel", "profiler", "conformance", "examples", "bench", "cli")
          .whereLayer("mesh")
          .mayOnlyBeAccessedByLayers(
              "dtensor", "parallel", "profiler", "conformance", "examples", "bench", "cli")
          .whereLayer("funcol")
          .mayOnlyBeAccessedByLayers(
              "dtensor", "parallel", "profiler", "conformance", "examples", "bench", "cli")
          .whereLayer("c10d")
          .mayOnlyBeAccessedByLayers(
              "funcol",
              "mesh",
              "dtensor",
              "parallel",
              "profiler",
              "conformance",
              "examples",
              "bench",
              "cli");
}
