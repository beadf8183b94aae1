package dev.weft.conformance;

import dev.weft.nn.Embedding;
import dev.weft.nn.LayerNorm;
import dev.weft.nn.Linear;
import dev.weft.nn.Module;
import dev.weft.tensor.DType;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.op.Activations;
import dev.weft.tensor.op.Attention;
import dev.weft.tensor.op.Views;
import java.util.Map;

/** The models of tp.json. Weights come from the case's state afterwards. */
final class TpModels {
  private TpModels() {}

  /** A model by name; {@code dims} has B, S, E, F, NH and V. */
  static Module of(String name, Map<String, Long> dims) {
    return switch (name) {
      case "mlp" -> new Mlp(dims, true);
      case "mlp_nobias" -> new Mlp(dims, false);
      case "block" -> new Block(dims);
      case "lm" -> new LanguageModel(dims);
      default -> throw new CaseRunner.Mismatch("unknown model " + name);
    };
  }

  private static long size(Map<String, Long> dims, String name) {
    Long v = dims.get(name);
    if (v == null) {
      throw new CaseRunner.Mismatch("dimension " + name + " is missing");
    }
    return v;
  }

  private static Tensor blank(long... shape) {
    return Tensors.empty(DType.FLOAT32, shape);
  }

  private static Linear linear(long in, long out, boolean bias) {
    return new Linear(blank(out, in), bias ? blank(out) : null);
  }

  private static final class Mlp extends Module {
    private final Module w1;
    private final Module w2;

    Mlp(Map<String, Long> d, boolean bias) {
      w1 = registerModule("w1", linear(size(d, "E"), size(d, "F"), bias));
      w2 = registerModule("w2", linear(size(d, "F"), size(d, "E"), bias));
    }

    @Override
    protected Tensor forward(Tensor... in) {
      return w2.call(Activations.gelu(w1.call(in)));
    }
  }

  private static final class SelfAttention extends Module {
    private final long width;
    private final Module wq;
    private final Module wk;
    private final Module wv;
    private final Module wo;

    SelfAttention(Map<String, Long> d) {
      long e = size(d, "E");
      width = e / size(d, "NH");
      wq = registerModule("wq", linear(e, e, false));
      wk = registerModule("wk", linear(e, e, false));
      wv = registerModule("wv", linear(e, e, false));
      wo = registerModule("wo", linear(e, e, false));
    }

    private Tensor heads(Module w, Tensor x) {
      return Views.transpose(Views.view(w.call(x), x.size(0), x.size(1), -1, width), 1, 2);
    }

    @Override
    protected Tensor forward(Tensor... in) {
      Tensor x = in[0];
      long s = x.size(1);
      Tensor o =
          Attention.scaledDotProduct(
              heads(wq, x), heads(wk, x), heads(wv, x), Attention.causalMask(s, s));
      return wo.call(Views.reshape(Views.transpose(o, 1, 2), x.size(0), s, -1));
    }
  }

  private static final class Block extends Module {
    private final Module norm1;
    private final Module attn;
    private final Module norm2;
    private final Module mlp;

    Block(Map<String, Long> d) {
      norm1 = registerModule("norm1", new LayerNorm(size(d, "E"), 1e-5));
      attn = registerModule("attn", new SelfAttention(d));
      norm2 = registerModule("norm2", new LayerNorm(size(d, "E"), 1e-5));
      mlp = registerModule("mlp", new Mlp(d, true));
    }

    @Override
    protected Tensor forward(Tensor... in) {
      Tensor x = in[0].add(attn.call(norm1.call(in)));
      return x.add(mlp.call(norm2.call(x)));
    }
  }

  private static final class LanguageModel extends Module {
    private final Module embed;
    private final Module block;
    private final Module norm;
    private final Module head;

    LanguageModel(Map<String, Long> d) {
      embed = registerModule("embed", new Embedding(blank(size(d, "V"), size(d, "E"))));
      block = registerModule("block", new Block(d));
      norm = registerModule("norm", new LayerNorm(size(d, "E"), 1e-5));
      head = registerModule("head", linear(size(d, "E"), size(d, "V"), false));
    }

    @Override
    protected Tensor forward(Tensor... in) {
      return head.call(norm.call(block.call(embed.call(in))));
    }
  }
}
