package dev.weft.tensor;

import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.autograd.AutogradMeta;
import dev.weft.tensor.autograd.Node;
import dev.weft.tensor.cpu.HostData;
import dev.weft.tensor.op.Casts;
import dev.weft.tensor.op.Extrema;
import dev.weft.tensor.op.MatMul;
import dev.weft.tensor.op.Pointwise;
import dev.weft.tensor.op.Reductions;
import dev.weft.tensor.op.Softmaxes;
import dev.weft.tensor.op.Unary;
import dev.weft.tensor.op.Views;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.nd4j.linalg.api.ndarray.INDArray;

/**
 * An n-dimensional array of numbers: a plain one over host or device memory ({@link
 * StridedTensor}), a distributed one, or one whose data is still on its way. The object may be read
 * by any thread; its data belongs to the thread that works with it and is handed over through a
 * release/acquire point.
 *
 * <p>Operators are static methods by family in {@code dev.weft.tensor.op}; the everyday ones are
 * here as well. Semantics of dtype promotion, division, NaN and empty tensors are PyTorch's.
 */
public abstract class Tensor {
  private @Nullable AutogradMeta autograd;

  /** For the tensor kinds. */
  protected Tensor() {}

  // ---- what it is ----

  /** The sizes; the global ones of a distributed tensor. Do not change the array. */
  public abstract long[] shape();

  /** The element type. */
  public abstract DType dtype();

  /** Where the data lies. */
  public abstract Device device();

  /** How operators treat it, or null for plain memory. */
  public abstract @Nullable TensorKind kind();

  /** The storages under it. */
  public abstract List<Storage> storages();

  /**
   * The whole value as a plain tensor on this rank: itself, or what a distributed tensor gathers (a
   * collective, to be called on all its ranks).
   */
  public abstract StridedTensor plain();

  /** Another tensor object of the same data, with no history. */
  public abstract Tensor alias();

  /** A contiguous copy that belongs to the caller and to no scope; not recorded. */
  public abstract Tensor ownedCopy();

  /** The number of dimensions. */
  public final int ndim() {
    return shape().length;
  }

  /** The size of a dimension; negative ones count from the end. */
  public final long size(int dim) {
    return shape()[Shapes.dim(dim, ndim())];
  }

  /** The number of elements. */
  public final long numel() {
    return Shapes.numel(shape());
  }

  /** How often the data was changed in place. */
  public final int version() {
    int v = 0;
    for (Storage s : storages()) {
      v += s.version();
    }
    return v;
  }

  /** Shape, dtype and device in a few characters, for messages; never reads the data. */
  public String describe() {
    return dtype() + Arrays.toString(shape()) + " on " + device();
  }

  // ---- memory ----

  /** Frees the memory now, unless something retains it. Later reads are errors. */
  public final void close() {
    for (Storage s : storages()) {
      if (!s.isFreed()) {
        boolean unused = TensorScope.disown(s);
        s.release();
      }
    }
  }

  /** Takes the maker's reference from the scope that holds it; the caller then holds it. */
  public final void disown() {
    for (Storage s : storages()) {
      boolean unused = TensorScope.disown(s);
    }
  }

  /** True when this covers all of storages that only {@code scope} holds. */
  public final boolean isWholeStorageOf(TensorScope scope) {
    for (Storage s : storages()) {
      if (s.owner() != scope || s.byteSize() != numelOnRank() * dtype().byteSize()) {
        return false;
      }
    }
    return !storages().isEmpty() && isDense();
  }

  /** Elements that this rank holds. */
  protected long numelOnRank() {
    return numel();
  }

  /** True where this rank's elements lie in row-major order without gaps. */
  protected abstract boolean isDense();

  /** True where this rank's elements lie in row-major order without gaps. */
  public boolean isContiguous() {
    return isDense();
  }

  /** Gives the reference that the caller holds to the scope of another tensor, if it has one. */
  public final boolean giveToOwnerOf(Tensor other) {
    List<Storage> theirs = other.storages();
    TensorScope owner = theirs.isEmpty() ? null : theirs.get(0).owner();
    if (owner == null) {
      return false;
    }
    for (Storage s : storages()) {
      owner.take(s);
    }
    return true;
  }

  /** Gives the reference that the caller holds to this thread's scope, or to nobody. */
  public final void giveToCurrentScope() {
    TensorScope scope = TensorScope.current();
    for (Storage s : storages()) {
      if (scope != null && s.owner() == null) {
        scope.take(s);
      } else if (s.owner() != null) {
        s.release();
      }
    }
  }

  // ---- autograd ----

  /** Autograd's view of this tensor, made when first asked for. */
  public final AutogradMeta autograd() {
    AutogradMeta meta = autograd;
    if (meta == null) {
      meta = new AutogradMeta();
      autograd = meta;
    }
    return meta;
  }

  /** Autograd's view of this tensor, or null. */
  public final @Nullable AutogradMeta autogradOrNull() {
    return autograd;
  }

  /** Whether gradients flow to it. */
  public final boolean requiresGrad() {
    return Autograd.requiresGrad(autograd);
  }

  /** Asks for gradients of a leaf, or no longer. */
  public final Tensor requiresGrad(boolean requires) {
    Autograd.setRequiresGrad(this, requires);
    return this;
  }

  /** True unless it is the recorded result of an operator. */
  public final boolean isLeaf() {
    return Autograd.gradFn(autograd) == null;
  }

  /** The call that made it, or null for a leaf. */
  public final @Nullable Node gradFn() {
    return Autograd.gradFn(autograd);
  }

  /** A leaf's accumulated gradient, or null. */
  public final @Nullable Tensor grad() {
    return Autograd.grad(autograd);
  }

  /** Sets a leaf's gradient; null clears it and lets its memory go. */
  public final void setGrad(@Nullable Tensor gradient) {
    Autograd.setGrad(this, gradient);
  }

  /** Computes the gradients of all leaves below this tensor of one element. */
  public final void backward() {
    Autograd.backward(this, null, false);
  }

  /** The same, from a gradient of this tensor's shape. */
  public final void backward(Tensor gradient) {
    Autograd.backward(this, gradient, false);
  }

  /** The same data without history. */
  public final Tensor detach() {
    return alias();
  }

  // ---- everyday operators; the rest are in dev.weft.tensor.op ----

  /** this + other, with broadcasting. */
  public final Tensor add(Tensor other) {
    return Pointwise.add(this, other);
  }

  /** this + value. */
  public final Tensor add(Number value) {
    return Pointwise.add(this, value);
  }

  /** this - other, with broadcasting. */
  public final Tensor sub(Tensor other) {
    return Pointwise.sub(this, other);
  }

  /** this - value. */
  public final Tensor sub(Number value) {
    return Pointwise.sub(this, value);
  }

  /** this * other element by element, with broadcasting. */
  public final Tensor mul(Tensor other) {
    return Pointwise.mul(this, other);
  }

  /** this * value. */
  public final Tensor mul(Number value) {
    return Pointwise.mul(this, value);
  }

  /** this / other element by element, with broadcasting; integers give float32. */
  public final Tensor div(Tensor other) {
    return Pointwise.div(this, other);
  }

  /** this / value; integers give float32. */
  public final Tensor div(Number value) {
    return Pointwise.div(this, value);
  }

  /** -this. */
  public final Tensor neg() {
    return Unary.neg(this);
  }

  /** This to a power. */
  public final Tensor pow(Number exponent) {
    return Pointwise.pow(this, exponent);
  }

  /** The matrix product; see {@link MatMul#matmul}. */
  public final Tensor matmul(Tensor other) {
    return MatMul.matmul(this, other);
  }

  /** The same elements in another shape, of which one size may be -1. */
  public final Tensor reshape(long... shape) {
    return Views.reshape(this, shape);
  }

  /** The dimensions in another order. */
  public final Tensor permute(int... dims) {
    return Views.permute(this, dims);
  }

  /** Two dimensions exchanged. */
  public final Tensor transpose(int dim0, int dim1) {
    return Views.transpose(this, dim0, dim1);
  }

  /** The transpose of a matrix. */
  public final Tensor t() {
    return Views.t(this);
  }

  /** Without the dimensions of size 1, or those of size 1 among the given. */
  public final Tensor squeeze(int... dims) {
    return Views.squeeze(this, dims);
  }

  /** With a new dimension of size 1. */
  public final Tensor unsqueeze(int dim) {
    return Views.unsqueeze(this, dim);
  }

  /** Dimensions of size 1 repeated to a shape. */
  public final Tensor expand(long... shape) {
    return Views.expand(this, shape);
  }

  /** Positions [start, end) of a dimension. */
  public final Tensor slice(int dim, long start, long end) {
    return Views.slice(this, dim, start, end, 1);
  }

  /** One position of a dimension, which goes. */
  public final Tensor select(int dim, long index) {
    return Views.select(this, dim, index);
  }

  /** The sum of all elements, or over the given dimensions. */
  public final Tensor sum(int... dims) {
    return Reductions.sum(this, dims);
  }

  /** The mean of all elements, or over the given dimensions. */
  public final Tensor mean(int... dims) {
    return Reductions.mean(this, dims);
  }

  /** The largest element, NaN where there is one. */
  public final Tensor max() {
    return Extrema.max(this);
  }

  /** Softmax along a dimension. */
  public final Tensor softmax(int dim) {
    return Softmaxes.softmax(this, dim);
  }

  /** The values as another dtype; itself where it has it already. */
  public final Tensor to(DType dtype) {
    return Casts.to(this, dtype);
  }

  /** The values on another device; itself where it is there already. */
  public final Tensor to(Device device) {
    return Casts.to(this, device);
  }

  /** Itself where it lies in row-major order without gaps, else a copy that does. */
  public final Tensor contiguous() {
    return Casts.contiguous(this);
  }

  /** A contiguous copy, through which gradients flow. */
  public final Tensor copy() {
    return Casts.copy(this);
  }

  // ---- values ----

  /** The value of a tensor of one element. */
  public final double item() {
    return HostData.item(this);
  }

  /** The values in row-major order, converted. */
  public final float[] toFloatArray() {
    return HostData.floats(plain());
  }

  /** The values in row-major order, converted. */
  public final double[] toDoubleArray() {
    return HostData.doubles(plain());
  }

  /** The values in row-major order, converted; fractions are cut. */
  public final long[] toLongArray() {
    return HostData.longs(plain());
  }

  /** A float32 CPU tensor with these values. */
  public static Tensor of(float[] values, long... shape) {
    return HostData.of(values, shape);
  }

  /** A float64 CPU tensor with these values. */
  public static Tensor of(double[] values, long... shape) {
    return HostData.of(values, shape);
  }

  /** An int64 CPU tensor with these values. */
  public static Tensor of(long[] values, long... shape) {
    return HostData.of(values, shape);
  }

  /**
   * A tensor over the memory of an ND4J array, with its strides; no copy is made. The array is kept
   * alive, and a change of one is a change of the other.
   */
  public static Tensor of(INDArray array) {
    return Nd4jArrays.adopt(array);
  }

  /**
   * An ND4J array over the memory of this CPU tensor, which lives as long as the array does. Waits
   * for pending data; a distributed tensor is gathered, one on a GPU copied. Else a copy is made
   * only of repeated elements ({@link #expand}), for which ND4J has no layout.
   */
  public final INDArray toNd4j() {
    return Nd4jArrays.array(plain());
  }

  /** The values of a plain CPU tensor, waiting for pending data; else what it is. */
  @Override
  public String toString() {
    if (kind() == null && device().isCpu() && this instanceof StridedTensor t) {
      return t.storage().isFreed() ? "tensor(" + describe() + ", freed)" : TensorFormat.format(t);
    }
    return "tensor(" + describe() + ")";
  }
}
