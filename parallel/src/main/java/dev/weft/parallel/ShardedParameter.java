package dev.weft.parallel;

import dev.weft.c10d.Work;
import dev.weft.dtensor.DTensor;
import dev.weft.dtensor.DTensor.FromLocal;
import dev.weft.dtensor.Placement;
import dev.weft.dtensor.Placements;
import dev.weft.dtensor.StridedShard;
import dev.weft.mesh.DeviceMesh;
import dev.weft.nn.DeferredInit;
import dev.weft.nn.Module;
import dev.weft.tensor.DType;
import dev.weft.tensor.Device;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.TensorScope;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.InPlace;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * One parameter of a group: the part that this rank keeps, and the whole that forward and backward
 * use. With tensor parallelism "whole" is the rank's part of that.
 */
final class ShardedParameter {
  /** Where a module looks it up. */
  record Place(Module owner, String name) {}

  private final List<Place> places;
  private final String path;
  private final DTensor sharded;
  private final Tensor whole;
  private final UnshardedStorage storage;
  private final long[] wholeShape;
  private final DType wholeDtype;
  private final int ranks;
  private final long chunkRows;
  private final long rowElements;

  /**
   * What memory it takes.
   *
   * @param wholeDtype of the whole
   * @param compute where the whole is
   * @param part where the part is
   */
  record Memory(DType wholeDtype, Device compute, Device part) {}

  /**
   * Cuts a parameter and puts the part in its place. All ranks of the mesh take the values, or the
   * random numbers of a deferred one, from the first.
   *
   * @param mesh replicated (if it has two dimensions) by sharded
   */
  ShardedParameter(String path, List<Place> places, Tensor p, DeviceMesh mesh, Memory memory) {
    this.path = path;
    this.places = places;
    this.wholeDtype = memory.wholeDtype;
    StridedTensor local = Parts.of(p);
    boolean deferred = DeferredInit.isDeferred(p);
    int shardDim = mesh.ndim() - 1;
    this.ranks = mesh.size(shardDim);
    this.wholeShape = local.shape().clone();
    this.chunkRows = (wholeShape[0] + ranks - 1) / ranks;
    this.rowElements = Shapes.numel(Arrays.copyOfRange(wholeShape, 1, wholeShape.length));
    StridedTensor rows = rows(local, mesh.coordinate(shardDim));
    if (!deferred) {
      fromFirst(mesh, local.alias());
    }
    StridedTensor part =
        TensorScope.outside(() -> Tensors.empty(p.dtype(), memory.part, rows.shape()));
    this.sharded = distributed(p, part, mesh);
    if (deferred) {
      try (TensorScope scope = TensorScope.open()) {
        Tensor position =
            Tensor.of(DeferredInit.position(p), 2).to(mesh.getGroup(shardDim).controlDevice());
        fromFirst(mesh, position);
        DeferredInit.fill(p, sharded, position.toLongArray());
      }
    } else {
      Parts.copy(rows, part);
    }
    this.storage =
        UnshardedStorage.of(path, memory.compute, Shapes.numel(wholeShape) * wholeDtype.byteSize());
    this.whole = wholeTensor(p);
    put(sharded);
    Tensor unusedWhole = whole.requiresGrad(p.requiresGrad());
  }

  private static void fromFirst(DeviceMesh mesh, Tensor value) {
    for (int m = 0; m < mesh.ndim(); m++) {
      Work unused = mesh.getGroup(m).broadcast(value, mesh.groupRank(m, 0));
    }
  }

  /**
   * Refuses what cannot be cut, before anything is.
   *
   * @throws IllegalArgumentException for no dimension, no data, or placements that cannot be joined
   */
  static void check(String path, Tensor p) {
    if (p.ndim() == 0) {
      throw new IllegalArgumentException(
          "fullyShard: parameter '"
              + path
              + "' has no dimension to cut; expected at least one, or keep it out of the module");
    }
    if (p.device().isMeta() && !DeferredInit.isDeferred(p)) {
      throw new IllegalArgumentException(
          "fullyShard: parameter '"
              + path
              + "' is on device meta and does not know its values; expected it to be made under"
              + " DeferredInit");
    }
    if (p instanceof DTensor d
        && d.placements().stream().anyMatch(x -> x.isPartial() || x instanceof StridedShard)) {
      throw new IllegalArgumentException(
          "fullyShard: parameter '"
              + path
              + "' is "
              + d.describe()
              + "; expected placements that are replicated or plain shards");
    }
  }

  private DTensor distributed(Tensor p, StridedTensor part, DeviceMesh mesh) {
    List<Placement> placements = new ArrayList<>();
    if (mesh.ndim() == 2) {
      placements.add(Placements.replicate());
    }
    DeviceMesh all = mesh;
    long[] strides = Shapes.contiguousStrides(p.shape());
    if (p instanceof DTensor d) {
      int pieces = 1;
      for (int m = 0; m < d.mesh().ndim(); m++) {
        Placement other = d.placements().get(m);
        pieces *= other.isShard(0) ? d.mesh().size(m) : 1;
      }
      placements.add(pieces > 1 ? new StridedShard(0, pieces) : Placements.shard(0));
      placements.addAll(d.placements());
      all = DeviceMesh.concatenate(List.of(mesh, d.mesh()));
    } else {
      placements.add(Placements.shard(0));
    }
    DeviceMesh joined = all;
    try {
      return Autograd.noGrad(
          () ->
              (DTensor)
                  DTensor.fromLocal(
                          part, joined, placements, FromLocal.DEFAULT.withShape(p.shape(), strides))
                      .requiresGrad(p.requiresGrad()));
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException(
          "fullyShard: parameter '"
              + path
              + "' ("
              + p.describe()
              + ") cannot be cut evenly enough over "
              + mesh
              + ": "
              + e.getMessage(),
          e);
    }
  }

  private Tensor wholeTensor(Tensor p) {
    StridedTensor t =
        new StridedTensor(storage, wholeDtype, wholeShape, Shapes.contiguousStrides(wholeShape), 0);
    if (!(p instanceof DTensor d)) {
      return t;
    }
    return Autograd.noGrad(
        () ->
            DTensor.fromLocal(
                t,
                d.mesh(),
                d.placements(),
                FromLocal.DEFAULT.withShape(d.shape(), Shapes.contiguousStrides(d.shape()))));
  }

  /** The rows of a whole tensor that belong to a rank's index. */
  private StridedTensor rows(StridedTensor t, int index) {
    long start = Math.min(wholeShape[0], index * chunkRows);
    long end = Math.min(wholeShape[0], (index + 1) * chunkRows);
    return Regions.narrow(t, 0, start, end - start);
  }

  private void put(Tensor t) {
    for (Place p : places) {
      Tensor unused = p.owner.replaceParameter(p.name, t);
    }
  }

  String path() {
    return path;
  }

  DTensor sharded() {
    return sharded;
  }

  Tensor whole() {
    return whole;
  }

  /** Elements that each rank sends: those of a full chunk. */
  long chunkElements() {
    return chunkRows * rowElements;
  }

  /** Has the module compute with the whole parameter, or hold the part again. */
  void useWhole(boolean use) {
    put(use ? whole : sharded);
  }

  boolean isWhole() {
    return storage.isFilled();
  }

  void dropWhole() {
    storage.drop();
  }

  /** Puts this rank's part into a flat buffer. */
  void copyPartTo(StridedTensor flat, long at) {
    StridedTensor part = Parts.of(sharded);
    Parts.copy(part, Parts.piece(flat, at, part.shape()));
  }

  /**
   * Makes it whole from the parts of all ranks.
   *
   * @param offsets where each index's part lies in {@code flat}
   * @param changed whether the parts have changed since it was whole before
   */
  void fill(StridedTensor flat, long[] offsets, boolean changed) {
    StridedTensor memory =
        TensorScope.outside(() -> Tensors.empty(wholeDtype, flat.device(), wholeShape));
    for (int i = 0; i < ranks; i++) {
      StridedTensor to = rows(memory, i);
      Parts.copy(Parts.piece(flat, offsets[i], to.shape()), to);
    }
    storage.fill(memory);
    if (changed) {
      storage.bumpVersion();
    }
  }

  /** Puts the gradient of the whole into a flat buffer, each index's rows at its offset. */
  void copyGradientTo(StridedTensor flat, long[] offsets) {
    Tensor g = whole.grad();
    for (int i = 0; i < ranks; i++) {
      StridedTensor piece = Parts.piece(flat, offsets[i], chunkElements());
      StridedTensor rows = g == null ? null : rows(Parts.of(g), i);
      if (rows == null || rows.numel() < chunkElements()) {
        Regions.zero(piece);
      }
      if (rows != null && rows.numel() > 0) {
        Parts.copy(rows, Parts.piece(flat, offsets[i], rows.shape()));
      }
    }
    whole.setGrad(null);
  }

  /** Adds this rank's part of the reduced gradient to the sharded parameter's. */
  void accumulate(StridedTensor flat, long at) {
    StridedTensor part = Parts.of(sharded);
    StridedTensor piece = Parts.piece(flat, at, part.shape());
    Tensor before = sharded.grad();
    if (before != null) {
      try (TensorScope scope = TensorScope.open()) {
        Tensor unused = InPlace.add(Parts.of(before), piece.to(part.device()).to(part.dtype()));
      }
      return;
    }
    StridedTensor own =
        TensorScope.outside(() -> Tensors.empty(part.dtype(), part.device(), part.shape()));
    Parts.copy(piece, own);
    DTensor g =
        DTensor.fromLocal(
            own,
            sharded.mesh(),
            sharded.placements(),
            FromLocal.DEFAULT.withShape(sharded.shape(), sharded.spec().strides()));
    sharded.setGrad(g);
    own.close();
  }
}
