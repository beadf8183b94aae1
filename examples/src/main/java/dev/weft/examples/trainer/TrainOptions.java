package dev.weft.examples.trainer;

import dev.weft.examples.reference.DecoderConfig;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** All options of {@link Train}. Filled by picocli, and only read from then on. */
@Command(
    name = "train",
    description = "Trains a small language model over any factorisation of the ranks.",
    mixinStandardHelpOptions = true,
    sortOptions = false,
    usageHelpAutoWidth = true)
public final class TrainOptions {
  @Mixin final ParallelOptions parallel = new ParallelOptions();
  @Mixin final DataOptions data = new DataOptions();
  @Mixin final ModelOptions model = new ModelOptions();
  @Mixin final OptimizerOptions optimizer = new OptimizerOptions();
  @Mixin final RunOptions run = new RunOptions();
  @Mixin final HealthOptions health = new HealthOptions();

  /** Options with their defaults, for picocli to fill. */
  public TrainOptions() {}

  /**
   * Reads arguments.
   *
   * @throws IllegalArgumentException for an unknown option or a value of another type
   */
  public static TrainOptions parse(String... arguments) {
    TrainOptions options = new TrainOptions();
    CommandLine.ParseResult unused = parse(command(options), arguments);
    return options;
  }

  static CommandLine.ParseResult parse(CommandLine command, String... arguments) {
    try {
      return command.parseArgs(arguments);
    } catch (CommandLine.ParameterException e) {
      throw new IllegalArgumentException(e.getMessage(), e);
    }
  }

  static CommandLine command(TrainOptions options) {
    return new CommandLine(options).setCaseInsensitiveEnumValuesAllowed(true);
  }

  /** Whether ranks are threads of one process. */
  public boolean inProcess() {
    return run.inProcess;
  }

  /**
   * The sizes of the mesh.
   *
   * @param world the ranks there are, or 0 where the mesh decides
   */
  public ParallelDims dims(int world) {
    return parallel.dims(world);
  }

  /** The model for the tokens. */
  DecoderConfig config(TokenSource tokens) {
    return model.config(tokens.vocab(), data.seq, data.seed);
  }

  /**
   * Refuses what cannot be trained, before anything is made.
   *
   * @param world the ranks there are, or 0 where the mesh decides
   * @throws IllegalArgumentException naming the option, its value and what was expected
   */
  public void check(int world) {
    ParallelDims dims = dims(world);
    optimizer.check();
    run.check();
    health.check();
    TokenSource tokens = data.tokens();
    parallel.check(dims, config(tokens), optimizer.batch);
    TokenBatches unused = data.training(tokens);
    if (evaluates()) {
      unused = data.evaluation(tokens, (long) run.evalBatches * optimizer.batch);
    }
  }

  /** Whether ranks train on GPUs. */
  public boolean onGpu() {
    return parallel.device.equals("cuda");
  }

  /** The values of all options by name, defaults included; what is left open is left out. */
  Map<String, String> values() {
    CommandSpec untouched = command(new TrainOptions()).getCommandSpec();
    Map<String, String> out = new LinkedHashMap<>();
    for (OptionSpec option : command(this).getCommandSpec().options()) {
      Object value = option.getValue();
      boolean empty = value == null || value.equals(0) || value.equals(false) || value.equals("");
      Object before = untouched.findOption(option.longestName()).getValue();
      if (value != null && !(empty && value.equals(before))) {
        String text = value.toString();
        out.put(option.longestName(), value instanceof Enum ? text.toLowerCase(Locale.ROOT) : text);
      }
    }
    return out;
  }

  /** Arguments of {@link Train#main} for processes with these options. */
  public List<String> toArguments() {
    Map<String, String> values = values();
    values.remove("--in-process");
    List<String> out = new ArrayList<>();
    values.forEach((name, value) -> out.add(name + "=" + value));
    return out;
  }

  /** Whether there is anything to evaluate on. */
  boolean evaluates() {
    return run.evalBatches > 0 && data.heldOut > 0;
  }
}
