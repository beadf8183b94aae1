package dev.weft.dtensor.tp;

import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Placement;
import dev.weft.dtensor.Placements;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.Embedding;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.tensor.Tensor;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The tensor-parallel styles, with PyTorch's defaults. Each is immutable; the methods that change
 * an option return a copy.
 */
public final class Styles {
  private Styles() {}

  /** Output features cut: weight rows and bias on each rank, the input whole, the output cut. */
  public static Cut colwise() {
    return new Cut(true, null, Placements.shard(-1), true, 0);
  }

  /** Input features cut: weight columns on each rank, the input cut, the output reduced. */
  public static Cut rowwise() {
    return new Cut(false, null, Placements.replicate(), true, 0);
  }

  /**
   * Whole parameters, which must be equal on all ranks already, and activations cut along the
   * sequence (dimension 1).
   */
  public static Sequence sequence() {
    return new Sequence(1, false);
  }

  /**
   * The experts of a {@link MixtureOfExperts} spread over the ranks, as many on each, and its gate
   * whole on every rank.
   */
  public static ParallelStyle experts() {
    return Styles::spreadExperts;
  }

  private static void spreadExperts(Module root, String path, Module module, DeviceMesh mesh) {
    if (!(module instanceof MixtureOfExperts m)) {
      throw new IllegalArgumentException(
          "experts: module '"
              + path
              + "' is a "
              + module.getClass().getSimpleName()
              + "; expected MixtureOfExperts");
    }
    if (m.experts() % mesh.size() != 0) {
      throw new IllegalArgumentException(
          "experts: module '"
              + path
              + "' has "
              + m.experts()
              + " experts; expected a multiple of the "
              + mesh.size()
              + " ranks");
    }
    place(root, path, "gate", mesh, Placements.replicate());
    place(root, path, "up", mesh, Placements.shard(0));
    place(root, path, "down", mesh, Placements.shard(0));
  }

  /** Places the first input of a module. */
  public static Input prepareInput(Placement is, Placement wanted) {
    return new Input(is, wanted, false);
  }

  /** Places the output of a module. */
  public static Output prepareOutput(Placement is, Placement wanted) {
    return new Output(is, wanted, true);
  }

  /** Places the first input and the output of a module. */
  public static ParallelStyle prepareInputOutput(Input input, Output output) {
    return new Both(input, output);
  }

  /** A linear or embedding layer cut along one dimension of its weight. */
  public static final class Cut implements ParallelStyle {
    private final boolean columns;
    private final @Nullable Placement input;
    private final Placement output;
    private final boolean localOutput;
    // 0 where it does not matter.
    private final int heads;

    private Cut(
        boolean columns,
        @Nullable Placement input,
        Placement output,
        boolean localOutput,
        int heads) {
      this.columns = columns;
      this.input = input;
      this.output = output;
      this.localOutput = localOutput;
      this.heads = heads;
    }

    /** How a plain input is placed. */
    public Cut input(Placement placement) {
      return new Cut(columns, placement, output, localOutput, heads);
    }

    /** How the output shall be placed. */
    public Cut output(Placement placement) {
      return new Cut(columns, input, placement, localOutput, heads);
    }

    /** Whether the output is this rank's part as a plain tensor; it is at first. */
    public Cut localOutput(boolean local) {
      return new Cut(columns, input, output, local, heads);
    }

    /**
     * Says that the features that are cut are so many heads of attention, none of which may be cut:
     * their number must be a multiple of the ranks, which is checked when the style is applied.
     */
    public Cut heads(int count) {
      if (count < 1) {
        throw new IllegalArgumentException("heads is " + count + "; expected 1 or more");
      }
      return new Cut(columns, input, output, localOutput, count);
    }

    @Override
    public void apply(Module root, String path, Module module, DeviceMesh mesh) {
      boolean embedding = module instanceof Embedding;
      if (!embedding && !(module instanceof Linear)) {
        throw new IllegalArgumentException(
            (columns ? "colwise" : "rowwise")
                + ": module '"
                + path
                + "' is a "
                + module.getClass().getSimpleName()
                + "; expected Linear or Embedding");
      }
      if (heads % mesh.size() != 0) {
        throw new IllegalArgumentException(
            (columns ? "colwise" : "rowwise")
                + ": module '"
                + path
                + "' has "
                + heads
                + " heads; expected a multiple of the "
                + mesh.size()
                + " ranks of "
                + mesh);
      }
      // An embedding's weight is [rows, features], a linear layer's [out, in].
      int dim = embedding == columns ? 1 : 0;
      place(root, path, "weight", mesh, Placements.shard(dim));
      if (module.hasParameter("bias")) {
        place(root, path, "bias", mesh, columns ? Placements.shard(0) : Placements.replicate());
      }
      Placement wanted = columns || embedding ? Placements.replicate() : Placements.shard(-1);
      Placement given = input == null ? wanted : input;
      Module.Handle unused =
          module.forwardPreHook(
              (m, in) ->
                  withFirst(
                      in,
                      placed(in[0], mesh, given, t -> splitsInput(embedding, t) ? null : wanted)));
      if (!embedding) {
        unused =
            module.replaceForward(
                (in, forward) -> {
                  DTensor x = (DTensor) in[0];
                  Tensor product = split(module, x);
                  return product == null
                      ? forward.apply(in)
                      : module.hasParameter("bias")
                          ? product.add(module.parameter("bias"))
                          : product;
                });
      }
      unused = module.forwardHook((m, in, out) -> handed(out, output, localOutput));
    }

    /** Whether the input of a layer is gathered piece by piece, within the product. */
    private boolean splitsInput(boolean embedding, DTensor x) {
      return columns
          && !embedding
          && OverlappedLinear.isEvenCut(x, x.placements().get(0))
          && Overlap.pays(x.spec().bytes());
    }

    /** The product with its collective split, or null where that is not done. */
    private @Nullable Tensor split(Module module, DTensor x) {
      DTensor weight = (DTensor) module.parameter("weight");
      if (splitsInput(false, x)) {
        return OverlappedLinear.allGatherLinear(x, weight);
      }
      int last = x.ndim() - 1;
      if (columns || !output.isShard() || !x.placements().get(0).isShard(last)) {
        return null;
      }
      int dim = output.shardDim() < 0 ? output.shardDim() + x.ndim() : output.shardDim();
      long bytes = x.spec().bytes() / x.shape()[last] * weight.shape()[0];
      return OverlappedLinear.isEvenCut(x, Placements.shard(dim)) && Overlap.pays(bytes)
          ? OverlappedLinear.linearReduceScatter(x, weight, dim)
          : null;
    }
  }

  /** A norm or dropout on activations cut along the sequence. */
  public static final class Sequence implements ParallelStyle {
    private final int dim;
    private final boolean localOutput;

    private Sequence(int dim, boolean localOutput) {
      this.dim = dim;
      this.localOutput = localOutput;
    }

    /** The dimension of the sequence. */
    public Sequence dim(int sequenceDim) {
      return new Sequence(sequenceDim, localOutput);
    }

    /** Whether the output is this rank's part as a plain tensor; it is not at first. */
    public Sequence localOutput(boolean local) {
      return new Sequence(dim, local);
    }

    @Override
    public void apply(Module root, String path, Module module, DeviceMesh mesh) {
      for (String name : module.namedParameters().keySet()) {
        // Equal on all ranks as it is: nothing is sent.
        place(root, path, name, mesh, Placements.replicate(), null);
      }
      Placement cut = Placements.shard(dim);
      Module.Handle unused =
          module.forwardPreHook((m, in) -> withFirst(in, placed(in[0], mesh, cut, cut)));
      unused =
          module.forwardHook(
              (m, in, out) -> localOutput && out instanceof DTensor d ? d.toLocal() : out);
    }
  }

  /** The first input of a module placed as it wants it. */
  public static final class Input implements ParallelStyle {
    private final Placement is;
    private final Placement wanted;
    private final boolean local;

    private Input(Placement is, Placement wanted, boolean local) {
      this.is = is;
      this.wanted = wanted;
      this.local = local;
    }

    /** Whether the module gets this rank's part as a plain tensor; it does not at first. */
    public Input localOutput(boolean local) {
      return new Input(is, wanted, local);
    }

    @Override
    public void apply(Module root, String path, Module module, DeviceMesh mesh) {
      Module.Handle unused =
          module.forwardPreHook(
              (m, in) -> {
                DTensor d = placed(in[0], mesh, is, wanted);
                return withFirst(in, local ? d.toLocal() : d);
              });
    }
  }

  /** The output of a module placed as those who use it want it. */
  public static final class Output implements ParallelStyle {
    private final Placement is;
    private final Placement wanted;
    private final boolean local;

    private Output(Placement is, Placement wanted, boolean local) {
      this.is = is;
      this.wanted = wanted;
      this.local = local;
    }

    /** Whether the output is this rank's part as a plain tensor; it is at first. */
    public Output localOutput(boolean local) {
      return new Output(is, wanted, local);
    }

    @Override
    public void apply(Module root, String path, Module module, DeviceMesh mesh) {
      Module.Handle unused =
          module.forwardHook(
              (m, in, out) -> {
                DTensor d = placed(out, mesh, is, wanted);
                return local ? d.toLocal() : d;
              });
    }
  }

  /** An input and an output style on one module. */
  private record Both(Input input, Output output) implements ParallelStyle {
    @Override
    public void apply(Module root, String path, Module module, DeviceMesh mesh) {
      input.apply(root, path, module, mesh);
      output.apply(root, path, module, mesh);
    }
  }

  private static void place(
      Module root, String path, String name, DeviceMesh mesh, Placement placement) {
    place(root, path, name, mesh, placement, 0);
  }

  private static void place(
      Module root,
      String path,
      String name,
      DeviceMesh mesh,
      Placement placement,
      @Nullable Integer source) {
    String full = path.isEmpty() ? name : path + "." + name;
    Tensor value = root.parameter(full);
    if (value instanceof DTensor before) {
      if (!before.placements().equals(List.of(placement))) {
        throw new IllegalArgumentException(
            "parameter '"
                + full
                + "' is tied to one that is placed as "
                + before.placements()
                + "; it cannot be placed as "
                + placement
                + ", too");
      }
      return;
    }
    Tensor unused =
        root.replaceParameter(
            full, DTensor.distributeTensor(value.detach(), mesh, List.of(placement), source));
  }

  private static Tensor[] withFirst(Tensor[] inputs, Tensor first) {
    Tensor[] out = inputs.clone();
    out[0] = first;
    return out;
  }

  private static DTensor placed(Tensor t, DeviceMesh mesh, Placement is, Placement wanted) {
    return placed(t, mesh, is, d -> wanted);
  }

  /** Placed as wanted, or left as it is where that is null. */
  private static DTensor placed(
      Tensor t, DeviceMesh mesh, Placement is, Function<DTensor, @Nullable Placement> wanted) {
    DTensor d = t instanceof DTensor already ? already : DTensor.fromLocal(t, mesh, is);
    Placement to = wanted.apply(d);
    return to == null ? d : d.redistribute(to);
  }

  private static Tensor handed(Tensor out, Placement output, boolean local) {
    DTensor d = ((DTensor) out).redistribute(output);
    return local ? d.toLocal() : d;
  }
}
