package dev.weft.dtensor.tp;

import dev.weft.c10d.ProcessGroup;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.Placement;
import dev.weft.dtensor.Placements;
import dev.weft.funcol.FunctionalCollectives;
import dev.weft.nn.Module;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Generator;
import dev.weft.tensor.Regions;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Creation;
import dev.weft.tensor.op.Indexing;
import dev.weft.tensor.op.Joins;
import dev.weft.tensor.op.MatMul;
import dev.weft.tensor.op.Ordering;
import dev.weft.tensor.op.Random;
import dev.weft.tensor.op.Reductions;
import dev.weft.tensor.op.Softmaxes;
import dev.weft.tensor.op.Views;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;

/**
 * A layer of which each token goes through a few of many experts: y = sum over the chosen of
 * softmax(chosen logits) down(silu(up x)), as in Jiang et al., arXiv:2401.04088. No token is
 * dropped. With {@link Styles#experts} each rank holds some of the experts, and tokens go to them
 * and back by all-to-all; each rank then gives its own tokens.
 *
 * <p>Input [..., width]: plain, or distributed and whole along the width. Parameters: {@code gate}
 * [experts, width], {@code up} [experts, hidden, width], {@code down} [experts, width, hidden].
 */
public final class MixtureOfExperts extends Module {
  private final int experts;
  private final int chosen;

  /**
   * Uniform first values within the inverse root of what is summed over.
   *
   * @param chosen how many experts each token goes through
   */
  public MixtureOfExperts(long width, long hidden, int experts, int chosen, Generator generator) {
    if (experts < 1 || chosen < 1 || chosen > experts) {
      throw new IllegalArgumentException(
          "chosen is " + chosen + " of " + experts + " experts; expected 1 to that many");
    }
    this.experts = experts;
    this.chosen = chosen;
    Tensor unused = registerParameter("gate", uniform(generator, width, experts, width));
    unused = registerParameter("up", uniform(generator, width, experts, hidden, width));
    unused = registerParameter("down", uniform(generator, hidden, experts, width, hidden));
  }

  private static Tensor uniform(Generator generator, long fanIn, long... shape) {
    double bound = 1 / Math.sqrt((double) fanIn);
    return Random.uniform(Creation.zeros(DType.FLOAT32, shape), -bound, bound, generator);
  }

  int experts() {
    return experts;
  }

  @Override
  protected Tensor forward(Tensor... inputs) {
    if (inputs[0] instanceof DTensor d) {
      int last = d.ndim() - 1;
      for (Placement p : d.placements()) {
        if (p.isPartial() || p.isShard(last)) {
          throw new IllegalArgumentException(
              "MixtureOfExperts: the input is placed as "
                  + d.placements()
                  + "; expected it whole along dimension "
                  + last
                  + " and without an outstanding reduction");
        }
      }
      return DTensor.fromLocal(
          compute(d.toLocal()),
          d.mesh(),
          d.placements(),
          DTensor.FromLocal.DEFAULT.withShape(d.spec().shape(), d.spec().strides()));
    }
    return compute(inputs[0]);
  }

  private Tensor compute(Tensor input) {
    long width = input.size(-1);
    Tensor x = Views.reshape(input, input.numel() / Math.max(width, 1), width);
    // Each rank routes its own tokens, so that the gate's gradients add up over the ranks.
    Tensor gate = local("gate", Placements.partial());
    Tensor[] top = Ordering.topk(MatMul.linear(x, gate, null), chosen, -1, true);
    Tensor weights = Softmaxes.softmax(top[0], -1);
    Routing routing = Routing.of(top[1].toLongArray(), experts);
    Tensor rows = Indexing.indexSelect(x, 0, onDevice(routing.tokens(chosen), x.device()));
    Tensor done = throughExperts(rows, routing.counts());
    Tensor back = Indexing.indexSelect(done, 0, onDevice(routing.inverse(), x.device()));
    Tensor each = Views.reshape(back, x.size(0), chosen, width);
    Tensor sum = Reductions.sum(each.mul(Views.unsqueeze(weights, -1)), 1);
    return Views.reshape(sum, input.shape());
  }

  private Tensor local(String name, Placement gradient) {
    return parameter(name) instanceof DTensor d ? d.toLocal(List.of(gradient)) : parameter(name);
  }

  /** Rows sorted by expert, each through its own, in the same order. */
  private Tensor throughExperts(Tensor rows, long[] counts) {
    if (!(parameter("up") instanceof DTensor up) || up.mesh().size() == 1) {
      return compute(rows, counts);
    }
    ProcessGroup group = up.mesh().getGroup();
    int n = group.size();
    int own = experts / n;
    // arriving[r * own + e]: rows that rank r has for the e-th of this rank's experts
    long[] arriving = exchange(counts, group, rows.device());
    long[] sent = perRank(counts, own);
    long[] received = perRank(arriving, own);
    Tensor here = FunctionalCollectives.allToAllSingle(rows, received, sent, group);
    Routing byExpert = Routing.ofBlocks(arriving, own);
    Tensor sorted = Indexing.indexSelect(here, 0, onDevice(byExpert.tokens(1), rows.device()));
    Tensor done = compute(sorted, byExpert.counts());
    Tensor back = Indexing.indexSelect(done, 0, onDevice(byExpert.inverse(), rows.device()));
    return FunctionalCollectives.allToAllSingle(back, sent, received, group);
  }

  /** The experts that are here; one without rows takes part, so that its gradient is zero. */
  private Tensor compute(Tensor rows, long[] counts) {
    Tensor up = local("up", Placements.shard(0));
    Tensor down = local("down", Placements.shard(0));
    List<Tensor> parts = new ArrayList<>();
    long start = 0;
    for (int e = 0; e < counts.length; e++) {
      Tensor part = Views.narrow(rows, 0, start, counts[e]);
      Tensor hidden = Activations.silu(MatMul.linear(part, Views.select(up, 0, e), null));
      parts.add(MatMul.linear(hidden, Views.select(down, 0, e), null));
      start += counts[e];
    }
    return Joins.cat(parts, 0);
  }

  private static long[] exchange(long[] counts, ProcessGroup group, Device device) {
    return FunctionalCollectives.allToAllSingle(onDevice(counts, device), group).toLongArray();
  }

  private static long[] perRank(long[] counts, int own) {
    long[] sums = new long[counts.length / own];
    for (int i = 0; i < counts.length; i++) {
      sums[i / own] += counts[i];
    }
    return sums;
  }

  private static Tensor onDevice(long[] values, Device device) {
    Tensor host = Tensor.of(values, values.length);
    if (device.isCpu()) {
      return host;
    }
    StridedTensor there = Tensors.empty(DType.INT64, device, values.length);
    Regions.copy((StridedTensor) host, there);
    return there;
  }

  /**
   * An order of rows by expert.
   *
   * @param sorted the rows in that order
   * @param counts rows of each expert
   */
  private record Routing(int[] sorted, long[] counts) {
    static Routing of(long[] expertOfRow, int experts) {
      long[] counts = new long[experts];
      for (long e : expertOfRow) {
        counts[(int) e]++;
      }
      int[] sorted =
          IntStream.range(0, expertOfRow.length)
              .boxed()
              .sorted(Comparator.comparingLong(i -> expertOfRow[i]))
              .mapToInt(Integer::intValue)
              .toArray();
      return new Routing(sorted, counts);
    }

    /** Rows that come as one block for each rank and, within, each of {@code own} experts. */
    static Routing ofBlocks(long[] blocks, int own) {
      int rows = (int) Arrays.stream(blocks).sum();
      long[] expertOfRow = new long[rows];
      int at = 0;
      for (int b = 0; b < blocks.length; b++) {
        for (long i = 0; i < blocks[b]; i++) {
          expertOfRow[at++] = b % own;
        }
      }
      return of(expertOfRow, own);
    }

    /** The token of each row, where a token has so many rows. */
    long[] tokens(int rowsOfToken) {
      return Arrays.stream(sorted).mapToLong(i -> i / rowsOfToken).toArray();
    }

    /** Where each row is in the order. */
    long[] inverse() {
      long[] out = new long[sorted.length];
      for (int i = 0; i < sorted.length; i++) {
        out[sorted[i]] = i;
      }
      return out;
    }
  }
}
