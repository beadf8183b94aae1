package dev.weft.examples.reference;

import dev.weft.nn.Embedding;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.nn.RmsNorm;
import dev.weft.tensor.Device;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.op.Attention;
import dev.weft.tensor.op.Gated;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Views;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A byte-level decoder with rotary positions, RMS norms and gated feed-forward layers; no biases,
 * no dropout. Input int64 [batch, seq], output float32 [batch, seq, vocab].
 */
public final class Gpt extends Module {
  private final Embedding embedding;
  private final List<Block> blocks = new ArrayList<>();
  private final RmsNorm norm;
  private final Linear output;

  /** The reference's model. */
  public Gpt(GptConfig c) {
    this(c.decoder());
  }

  /** A model of any shape, with parameters that its seed and their names determine. */
  public Gpt(DecoderConfig c) {
    int d = c.dModel();
    embedding =
        registerModule("tok_emb", new Embedding(initial(c, "tok_emb.weight", c.vocab(), d)));
    Module layers = registerModule("layers", new Layers());
    RopeTables tables = new RopeTables(c.seq(), c.headSize(), c.ropeTheta());
    for (int i = 0; i < c.nLayers(); i++) {
      blocks.add(((Layers) layers).add(new Block(c, tables, "layers." + i + ".")));
    }
    norm = registerModule("norm", new RmsNorm(initial(c, "norm.weight", d), c.normEps()));
    Tensor head =
        c.tied() ? embedding.parameter("weight") : initial(c, "output.weight", c.vocab(), d);
    output = registerModule("output", new Linear(head, null));
  }

  private static Tensor initial(DecoderConfig c, String name, long... shape) {
    return TensorScope.outside(() -> Initialization.parameter(c.seed(), name, shape));
  }

  private static Linear linear(DecoderConfig c, String name, int out, int in) {
    return new Linear(initial(c, name + ".weight", out, in), null);
  }

  @Override
  protected Tensor forward(Tensor... inputs) {
    Tensor x = embedding.call(inputs[0]);
    for (Block b : blocks) {
      x = b.call(x);
    }
    return output.call(norm.call(x));
  }

  /** Only holds the blocks under their numbers. */
  private static final class Layers extends Module {
    private int count;

    Block add(Block block) {
      return registerModule(String.valueOf(count++), block);
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      throw new IllegalStateException("the blocks are called one by one");
    }
  }

  private static final class Block extends Module {
    private final RmsNorm attentionNorm;
    private final SelfAttention attention;
    private final RmsNorm feedForwardNorm;
    private final FeedForward feedForward;

    Block(DecoderConfig c, RopeTables tables, String path) {
      attentionNorm =
          registerModule(
              "attn_norm",
              new RmsNorm(initial(c, path + "attn_norm.weight", c.dModel()), c.normEps()));
      attention = registerModule("attn", new SelfAttention(c, tables, path + "attn."));
      feedForwardNorm =
          registerModule(
              "ffn_norm",
              new RmsNorm(initial(c, path + "ffn_norm.weight", c.dModel()), c.normEps()));
      feedForward = registerModule("ffn", new FeedForward(c, path + "ffn."));
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      Tensor x = Pointwise.add(inputs[0], attention.call(attentionNorm.call(inputs[0])));
      return Pointwise.add(x, feedForward.call(feedForwardNorm.call(x)));
    }
  }

  /** The rotations of all positions, computed once and kept on the device that asks. */
  private static final class RopeTables {
    private final int positions;
    private final int width;
    private final double theta;
    private Tensor @Nullable [] tables;

    RopeTables(int positions, int width, double theta) {
      this.positions = positions;
      this.width = width;
      this.theta = theta;
    }

    /** Cosines and sines of the first positions. */
    Tensor[] of(int seq, Device device) {
      Tensor[] all = tables;
      if (all == null || !all[0].device().equals(device)) {
        all =
            TensorScope.outside(
                () -> {
                  Tensor[] host = Attention.ropeTables(positions, width, theta);
                  return new Tensor[] {host[0].to(device), host[1].to(device)};
                });
        tables = all;
      }
      return new Tensor[] {all[0].slice(0, 0, seq), all[1].slice(0, 0, seq)};
    }
  }

  private static final class SelfAttention extends Module {
    private final int headSize;
    private final RopeTables tables;
    private final Linear query;
    private final Linear key;
    private final Linear value;
    private final Linear out;

    SelfAttention(DecoderConfig c, RopeTables tables, String path) {
      int d = c.dModel();
      headSize = c.headSize();
      this.tables = tables;
      int shared = c.nKvHeads() * headSize;
      query = registerModule("wq", linear(c, path + "wq", d, d));
      key = registerModule("wk", linear(c, path + "wk", shared, d));
      value = registerModule("wv", linear(c, path + "wv", shared, d));
      out = registerModule("wo", linear(c, path + "wo", d, d));
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      Tensor x = inputs[0];
      int seq = (int) x.size(1);
      Tensor[] angles = tables.of(seq, x.device());
      Tensor q = Attention.rope(heads(query.call(x)), angles[0], angles[1], 1);
      Tensor k = Attention.rope(heads(key.call(x)), angles[0], angles[1], 1);
      Tensor v = heads(value.call(x));
      int sharers = (int) (q.size(2) / k.size(2));
      Tensor mixed =
          Attention.scaledDotProduct(q, repeated(k, sharers), repeated(v, sharers), true, 1);
      // The width is this rank's share of the heads.
      Tensor joined = Views.reshape(mixed, x.size(0), seq, mixed.size(2) * headSize);
      return out.call(joined);
    }

    /** Grouped queries (Ainslie et al., arXiv:2305.13245): each head as often as it is shared. */
    private static Tensor repeated(Tensor t, int times) {
      if (times == 1) {
        return t;
      }
      long[] s = t.shape();
      Tensor each = Views.expand(Views.unsqueeze(t, 3), s[0], s[1], s[2], times, s[3]);
      return Views.reshape(each, s[0], s[1], s[2] * times, s[3]);
    }

    private Tensor heads(Tensor t) {
      if (t.size(2) % headSize != 0) {
        throw new IllegalArgumentException(
            "attention: this rank has "
                + t.size(2)
                + " features, and a head has "
                + headSize
                + "; expected a number of heads that is a multiple of the ranks that share them");
      }
      return Views.reshape(t, t.size(0), t.size(1), t.size(2) / headSize, headSize);
    }
  }

  private static final class FeedForward extends Module {
    private final Linear gate;
    private final Linear down;
    private final Linear up;

    FeedForward(DecoderConfig c, String path) {
      gate = registerModule("w1", linear(c, path + "w1", c.dFf(), c.dModel()));
      down = registerModule("w2", linear(c, path + "w2", c.dModel(), c.dFf()));
      up = registerModule("w3", linear(c, path + "w3", c.dFf(), c.dModel()));
    }

    @Override
    protected Tensor forward(Tensor... inputs) {
      Tensor x = inputs[0];
      return down.call(Gated.swiglu(gate.call(x), up.call(x)));
    }
  }
}
