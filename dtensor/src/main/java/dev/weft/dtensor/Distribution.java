package dev.weft.dtensor;

import dev.weft.mesh.DeviceMesh;
import dev.weft.tensor.Regions;
import dev.weft.tensor.Shapes;
import dev.weft.tensor.StridedTensor;
import dev.weft.tensor.Tensor;
import dev.weft.tensor.Tensors;
import dev.weft.tensor.autograd.Autograd;
import dev.weft.tensor.op.Attrs;
import dev.weft.tensor.op.Dispatcher;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** How plain tensors become distributed ones. */
final class Distribution {
  // In place of a source where nothing needs to be sent.
  private static final int NOBODY = -1;

  private Distribution() {}

  static DTensor distribute(
      Tensor tensor, DeviceMesh mesh, List<? extends Placement> asked, @Nullable Integer source) {
    if (tensor instanceof DTensor d) {
      if (d.mesh().equals(mesh)
          && d.placements().equals(DTensorSpec.normalize(mesh, asked, d.ndim()))) {
        return d;
      }
      throw new IllegalArgumentException(
          "distributeTensor: the tensor is distributed already ("
              + d.describe()
              + "); use redistribute");
    }
    List<Placement> placements = DTensorSpec.normalize(mesh, asked, tensor.ndim());
    StridedTensor plain = tensor.plain();
    DTensorSpec spec =
        new DTensorSpec(mesh, placements, plain.shape(), plain.strides(), plain.dtype());
    DTensor result = Autograd.noGrad(() -> new DTensor(spec, parts(plain, spec, source)));
    return tensor.requiresGrad() ? (DTensor) result.requiresGrad(true) : result;
  }

  private static StridedTensor parts(
      StridedTensor tensor, DTensorSpec spec, @Nullable Integer source) {
    DeviceMesh mesh = spec.mesh();
    int @Nullable [] at = mesh.getCoordinate();
    if (at == null) {
      return Tensors.empty(tensor.dtype(), tensor.device(), 0);
    }
    if (tensor.device().isMeta()) {
      return Tensors.empty(tensor.dtype(), tensor.device(), spec.localShape());
    }
    StridedTensor local = tensor;
    for (int m = 0; m < mesh.ndim(); m++) {
      Placement p = spec.placements().get(m);
      int from = source == null || mesh.size(m) == 1 ? NOBODY : checkSource(source, mesh, m);
      if (p.isShard()) {
        Cuts cuts = Cuts.of(p, mesh.size(m));
        local =
            from != NOBODY
                ? ShardCollectives.along(mesh, m).scatter(local, cuts, from)
                : Redistribution.cut(local, cuts, at[m]);
        continue;
      }
      if (from != NOBODY) {
        local = ShardCollectives.along(mesh, m).broadcast(local, from);
      }
      if (p instanceof Partial) {
        local =
            Redistribution.run(
                local,
                DTensorSpec.of(mesh, oneReplicate(mesh), local.shape(), local.dtype()),
                onePartial(mesh, m, p));
      }
    }
    return local == tensor ? Regions.copyOf(local) : local;
  }

  private static int checkSource(int source, DeviceMesh mesh, int m) {
    if (source < 0 || source >= mesh.size(m)) {
      throw new IllegalArgumentException(
          "source " + source + " is out of range for mesh dimension " + m + " of " + mesh);
    }
    return source;
  }

  private static List<Placement> oneReplicate(DeviceMesh mesh) {
    return java.util.Collections.nCopies(mesh.ndim(), Replicate.INSTANCE);
  }

  private static List<Placement> onePartial(DeviceMesh mesh, int m, Placement p) {
    Placement[] all = oneReplicate(mesh).toArray(new Placement[0]);
    all[m] = p;
    return List.of(all);
  }

  static DTensor fromLocal(
      Tensor local, DeviceMesh mesh, List<? extends Placement> asked, DTensor.FromLocal options) {
    if (local instanceof DTensor) {
      throw new IllegalArgumentException(
          "fromLocal: the tensor is distributed already (" + local.describe() + ")");
    }
    if ((options.shape() == null) != (options.strides() == null)) {
      throw new IllegalArgumentException(
          "fromLocal: shape and strides are given together or not at all");
    }
    List<Placement> placements = DTensorSpec.normalize(mesh, asked, local.ndim());
    StridedTensor plain = (StridedTensor) local;
    DTensorSpec spec = globalSpec(plain, mesh, placements, options);
    Tensor part = local;
    if (!mesh.containsThisRank()) {
      part = Tensors.empty(local.dtype(), local.device(), 0);
    } else if (options.check()) {
      part = checked(plain, spec, options.shape() != null);
    }
    return (DTensor)
        Dispatcher.call(DTensorOps.FROM_LOCAL, Attrs.of(spec, options.gradPlacements()), part);
  }

  private static DTensorSpec globalSpec(
      StridedTensor local, DeviceMesh mesh, List<Placement> placements, DTensor.FromLocal options) {
    long[] givenShape = options.shape();
    long[] givenStrides = options.strides();
    if (givenShape != null && givenStrides != null) {
      DTensorSpec spec = new DTensorSpec(mesh, placements, givenShape, givenStrides, local.dtype());
      if (mesh.containsThisRank() && !Arrays.equals(spec.localShape(), local.shape())) {
        throw new IllegalArgumentException(
            "fromLocal: this rank's tensor has shape "
                + Arrays.toString(local.shape())
                + "; a global shape of "
                + Arrays.toString(givenShape)
                + " placed as "
                + placements
                + " makes it "
                + Arrays.toString(spec.localShape()));
      }
      return spec;
    }
    long[] shape = local.shape().clone();
    long[] strides = local.strides().clone();
    for (int m = 0; m < placements.size(); m++) {
      if (placements.get(m) instanceof Shard s) {
        int n = mesh.size(m);
        shape[s.dim()] *= n;
        for (int d = 0; d < strides.length; d++) {
          if (d != s.dim() && strides[d] >= strides[s.dim()]) {
            strides[d] *= n;
          }
        }
      }
    }
    return new DTensorSpec(mesh, placements, Shapes.check(shape), strides, local.dtype());
  }

  /** Compares shapes over the mesh and takes replicated parts from the first rank of each group. */
  private static StridedTensor checked(StridedTensor local, DTensorSpec spec, boolean given) {
    StridedTensor part = local;
    for (int m = 0; m < spec.mesh().ndim(); m++) {
      if (spec.mesh().size(m) == 1) {
        continue;
      }
      ShardCollectives along = ShardCollectives.along(spec.mesh(), m);
      if (spec.placements().get(m).isReplicate()) {
        part = along.broadcast(part, 0);
      } else if (local.ndim() > 0 && !given) {
        along.requireSameShape(local.shape());
      }
    }
    return part;
  }
}
