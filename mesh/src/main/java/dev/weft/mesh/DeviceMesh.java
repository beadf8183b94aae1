package dev.weft.mesh;

import dev.weft.c10d.ProcessGroup;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * An n-dimensional array of ranks with optional names for its dimensions. A mesh object belongs to
 * one rank and may be used by the threads that act for it.
 *
 * <p>Process groups along dimensions are made at first use, by their members alone, and are shared
 * by all meshes cut from one root. A group orders its ranks ascending whatever their order in the
 * mesh ({@link #groupRank} maps between the two).
 */
public final class DeviceMesh {
  private final MeshRoot root;
  private final MeshDim[] dims;

  private DeviceMesh(MeshRoot root, MeshDim[] dims) {
    this.root = root;
    this.dims = dims;
  }

  /** A name and a size, for {@link #initDeviceMesh(String, Dim...)}. */
  public record Dim(String name, int size) {}

  /** A named dimension. */
  public static Dim dim(String name, int size) {
    return new Dim(name, size);
  }

  /**
   * A mesh over the first ranks of the world, in row-major order, with unnamed dimensions.
   *
   * @param deviceType {@code cpu} or {@code cuda}, without an index
   * @param shape sizes, each at least 1; their product is at most the world size
   */
  public static DeviceMesh initDeviceMesh(String deviceType, int... shape) {
    return of(deviceType, MeshConstruction.firstRanks(deviceType, shape), shape);
  }

  /** The same with names, which must be unique. */
  public static DeviceMesh initDeviceMesh(String deviceType, Dim... dims) {
    int[] shape = Arrays.stream(dims).mapToInt(Dim::size).toArray();
    String[] names = Arrays.stream(dims).map(Dim::name).toArray(String[]::new);
    return initDeviceMesh(deviceType, shape, names);
  }

  /** The same, with shape and names apart. */
  public static DeviceMesh initDeviceMesh(String deviceType, int[] shape, String... names) {
    MeshConstruction.checkUnique(shape, names);
    return of(deviceType, MeshConstruction.firstRanks(deviceType, shape), shape, names);
  }

  /**
   * A mesh of any ranks of the world in any order.
   *
   * @param ranks row-major, each at most once
   * @param shape sizes of at least 1 whose product is the number of ranks
   * @param names none, or one for each dimension
   */
  public static DeviceMesh of(String deviceType, int[] ranks, int[] shape, String... names) {
    MeshRoot root = MeshConstruction.root(deviceType, ranks, shape, names);
    return new DeviceMesh(root, root.dims);
  }

  // ---- what it is ----

  /** {@code cpu} or {@code cuda}. */
  public String deviceType() {
    return root.deviceType;
  }

  /** The number of dimensions. */
  public int ndim() {
    return dims.length;
  }

  /** The sizes. */
  public int[] shape() {
    return Arrays.stream(dims).mapToInt(MeshDim::size).toArray();
  }

  /** The number of ranks. */
  public int size() {
    int n = 1;
    for (MeshDim d : dims) {
      n *= d.size();
    }
    return n;
  }

  /** The size of a dimension; negative ones count from the end. */
  public int size(int dim) {
    return dims[checkDim(dim)].size();
  }

  /** The size of a named dimension. */
  public int size(String name) {
    return dims[dimIndex(name)].size();
  }

  /** The names, or null where the dimensions have none. */
  public @Nullable List<String> dimNames() {
    List<String> names = new ArrayList<>();
    for (MeshDim d : dims) {
      String name = d.name();
      if (name == null) {
        return null;
      }
      names.add(name);
    }
    return names;
  }

  /**
   * The ranks of this mesh in row-major order; of a part of a mesh, the part that holds this rank.
   */
  public int[] ranks() {
    requireDefined();
    int base = base();
    int n = size();
    int[] out = new int[n];
    for (int i = 0; i < n; i++) {
      int rest = i;
      int at = base;
      for (int d = dims.length - 1; d >= 0; d--) {
        int size = dims[d].size();
        at += dims[d].offset(rest % size);
        rest /= size;
      }
      out[i] = root.ranks[at];
    }
    return out;
  }

  private int base() {
    if (!root.contains()) {
      return 0;
    }
    int base = root.position;
    for (MeshDim d : dims) {
      base -= d.offset(d.indexOf(root.position));
    }
    return base;
  }

  private void requireDefined() {
    if (!root.contains() && size() != root.ranks.length) {
      throw outside("a part of the mesh");
    }
  }

  private IllegalArgumentException outside(String what) {
    return new IllegalArgumentException(
        what
            + " is not defined on rank "
            + root.worldRank
            + ", which is not among the mesh's ranks "
            + Arrays.toString(root.ranks));
  }

  /** Whether this rank is in the mesh. */
  public boolean containsThisRank() {
    return root.contains();
  }

  /**
   * Whether this part of the root is the first of those that lie beside each other, so that of the
   * ranks at one coordinate of the parts just one says true. True for the root itself.
   */
  public boolean isFirstPart() {
    return root.contains() && base() == 0;
  }

  /** This rank's index along each dimension, or null outside the mesh. */
  public int @Nullable [] getCoordinate() {
    return root.contains()
        ? Arrays.stream(dims).mapToInt(d -> d.indexOf(root.position)).toArray()
        : null;
  }

  /** This rank's index along one dimension. */
  public int coordinate(int dim) {
    int d = checkDim(dim);
    if (!root.contains()) {
      throw outside("the coordinate");
    }
    return dims[d].indexOf(root.position);
  }

  /** This rank's rank in the group of the only dimension. */
  public int getLocalRank() {
    return getLocalRank(onlyDim("getLocalRank"));
  }

  /** This rank's rank in the group of a dimension. */
  public int getLocalRank(int dim) {
    int d = checkDim(dim);
    if (!root.contains()) {
      throw outside("the local rank");
    }
    return groupRank(d, dims[d].indexOf(root.position));
  }

  /** This rank's rank in the group of a dimension. */
  public int getLocalRank(String name) {
    return getLocalRank(dimIndex(name));
  }

  /** The group of the only dimension. */
  public ProcessGroup getGroup() {
    return getGroup(onlyDim("getGroup"));
  }

  /** The group along a dimension that holds this rank. */
  public ProcessGroup getGroup(int dim) {
    int d = checkDim(dim);
    if (!root.contains()) {
      throw outside("the group");
    }
    return root.group(dims[d]);
  }

  /** The group along a dimension that holds this rank; also of a flattened one of the root. */
  public ProcessGroup getGroup(String name) {
    return getGroup(dimIndex(name));
  }

  /** The groups of all dimensions. */
  public List<ProcessGroup> getAllGroups() {
    List<ProcessGroup> groups = new ArrayList<>();
    for (int d = 0; d < dims.length; d++) {
      groups.add(getGroup(d));
    }
    return groups;
  }

  /**
   * The rank in the group of a dimension of the member at an index along it. The two differ where
   * the mesh's ranks do not ascend.
   */
  public int groupRank(int dim, int index) {
    int[] along = root.ranksAlong(dims[checkDim(dim)]);
    int smaller = 0;
    for (int r : along) {
      if (r < along[index]) {
        smaller++;
      }
    }
    return smaller;
  }

  /** The global ranks along a dimension through this rank, in the order of the mesh. */
  public int[] ranksAlong(int dim) {
    if (!root.contains()) {
      throw outside("the row of ranks");
    }
    return root.ranksAlong(dims[checkDim(dim)]);
  }

  private int onlyDim(String what) {
    if (dims.length != 1) {
      throw new IllegalArgumentException(
          what + ": the mesh has " + dims.length + " dimensions, so dim must be given");
    }
    return 0;
  }

  private int checkDim(int dim) {
    int n = dims.length;
    if (dim < -n || dim >= n) {
      throw new IndexOutOfBoundsException(
          "mesh dimension " + dim + " is out of range; the mesh has " + n + " dimensions");
    }
    return dim < 0 ? dim + n : dim;
  }

  /** The index of a named dimension. */
  public int dimIndex(String name) {
    int found = -1;
    for (int d = 0; d < dims.length; d++) {
      if (name.equals(dims[d].name())) {
        if (found >= 0) {
          throw new IllegalArgumentException(
              "mesh dimension '" + name + "' is ambiguous in " + this);
        }
        found = d;
      }
    }
    if (found < 0) {
      throw unknown(name);
    }
    return found;
  }

  private NoSuchElementException unknown(String name) {
    String valid =
        Arrays.stream(dims).map(d -> String.valueOf(d.name())).collect(Collectors.joining(", "));
    return new NoSuchElementException(
        "mesh dimension '" + name + "' does not exist; the dimensions are [" + valid + "]");
  }

  // ---- parts ----

  /**
   * The part of the mesh along some dimensions that holds this rank, with the dimensions in the
   * given order. Names of flattened dimensions are valid on the root.
   *
   * @throws NoSuchElementException for an unknown name
   * @throws IllegalArgumentException for a name given twice, or outside the mesh
   */
  public DeviceMesh get(String... names) {
    if (names.length == 0) {
      throw new IllegalArgumentException("get needs at least one dimension name");
    }
    if (dimNames() == null) {
      throw new IllegalArgumentException(
          "get" + Arrays.toString(names) + ": the dimensions of " + this + " have no names");
    }
    MeshDim[] chosen = new MeshDim[names.length];
    for (int i = 0; i < names.length; i++) {
      MeshDim flat = isRoot() ? root.flattened(names[i]) : null;
      chosen[i] = flat != null ? flat : dims[dimIndex(names[i])];
    }
    return part(chosen, "get" + Arrays.toString(names));
  }

  private DeviceMesh part(MeshDim[] chosen, String what) {
    int n = MeshDims.checkDisjoint(chosen, what);
    if (!root.contains() && n != root.ranks.length) {
      throw outside(what);
    }
    return new DeviceMesh(root, chosen);
  }

  private boolean isRoot() {
    return dims == root.dims;
  }

  /** The mesh that this one was cut from, or itself. */
  public DeviceMesh getRoot() {
    return isRoot() ? this : new DeviceMesh(root, root.dims);
  }

  /** One dimension over all ranks of this mesh; its name joins the names with underscores. */
  public DeviceMesh flatten() {
    List<String> names = dimNames();
    return flatten(names == null ? "" : String.join("_", names));
  }

  /**
   * One dimension over all ranks of this mesh, under a name that the root then knows. The same name
   * for the same layout gives the same dimension.
   */
  public DeviceMesh flatten(String name) {
    if (dimNames() == null) {
      throw new IllegalArgumentException("flatten: the dimensions of " + this + " have no names");
    }
    MeshDim flat = MeshDim.flatten(name, dims);
    if (dims.length == 1 && java.util.Objects.equals(name, dims[0].name())) {
      return this;
    }
    return new DeviceMesh(root, new MeshDim[] {name == null ? flat : root.register(name, flat)});
  }

  /**
   * Some of the dimensions as one, where a group that spans them is at hand without making one:
   * they were flattened, or they are the whole world.
   *
   * @return null where there is none
   */
  public @Nullable DeviceMesh merged(int... dimensions) {
    MeshDim flat = flat(dimensions);
    boolean world = flat.size() == root.ranks.length && root.isWorld();
    return world || root.isFlattened(flat) ? new DeviceMesh(root, new MeshDim[] {flat}) : null;
  }

  /** Whether some dimensions, in this order, were flattened into one. */
  public boolean isFlattened(int... dimensions) {
    return root.isFlattened(flat(dimensions));
  }

  private MeshDim flat(int... dimensions) {
    MeshDim[] chosen = new MeshDim[dimensions.length];
    for (int i = 0; i < chosen.length; i++) {
      chosen[i] = dims[checkDim(dimensions[i])];
    }
    return MeshDim.flatten(null, chosen);
  }

  /** A mesh with one dimension cut into several. */
  public DeviceMesh unflatten(String dim, int[] sizes, String... names) {
    for (MeshDim d : dims) {
      if (dim.equals(d.name())) {
        return unflatten(dimIndex(dim), sizes, names);
      }
    }
    throw new IllegalArgumentException("unflatten: " + unknown(dim).getMessage());
  }

  /**
   * A mesh with one dimension cut into several.
   *
   * @param sizes whose product is the size of the dimension
   * @param names one for each size
   */
  public DeviceMesh unflatten(int dim, int[] sizes, String... names) {
    if (dim < -dims.length || dim >= dims.length) {
      throw new IllegalArgumentException(
          "unflatten: dim "
              + dim
              + " is out of range; the mesh has "
              + dims.length
              + " dimensions");
    }
    int d = checkDim(dim);
    MeshDims.checkSizes(dim, dims[d].size(), sizes, names);
    List<MeshDim> all = new ArrayList<>(Arrays.asList(dims));
    all.remove(d);
    all.addAll(d, Arrays.asList(dims[d].split(sizes, names)));
    return new DeviceMesh(root, all.toArray(new MeshDim[0]));
  }

  /** The dimensions of several parts of one mesh as one mesh; they must not overlap. */
  public static DeviceMesh concatenate(List<DeviceMesh> parts) {
    if (parts.isEmpty()) {
      throw new IllegalArgumentException("concatenate needs at least one mesh");
    }
    DeviceMesh first = parts.get(0);
    List<MeshDim> all = new ArrayList<>();
    for (DeviceMesh m : parts) {
      if (m.root != first.root) {
        throw new IllegalArgumentException(
            "concatenate: the meshes " + parts + " must be parts of one mesh");
      }
      all.addAll(Arrays.asList(m.dims));
    }
    return first.part(all.toArray(new MeshDim[0]), "concatenate" + parts);
  }

  /** The ranks of every part along a named dimension, in the order of the mesh. */
  public List<int[]> allSubmeshes(String name) {
    MeshDim dim = dims[dimIndex(name)];
    List<int[]> out = new ArrayList<>();
    for (int p = 0; p < root.ranks.length; p++) {
      if (dim.indexOf(p) == 0) {
        int[] ranks = new int[dim.size()];
        for (int i = 0; i < ranks.length; i++) {
          ranks[i] = root.ranks[p + dim.offset(i)];
        }
        out.add(ranks);
      }
    }
    return out;
  }

  /**
   * An object that belongs to the root of this mesh on this rank, made when first asked for: caches
   * of other modules, which then live as long as the mesh.
   */
  public <T> T attachment(Class<T> type, java.util.function.Supplier<T> make) {
    return type.cast(root.attachments.computeIfAbsent(type, unused -> make.get()));
  }

  @Override
  public boolean equals(@Nullable Object o) {
    if (this == o) {
      return true;
    }
    return o instanceof DeviceMesh m
        && root.deviceType.equals(m.root.deviceType)
        && Arrays.equals(shape(), m.shape())
        && java.util.Objects.equals(dimNames(), m.dimNames())
        && (root == m.root ? Arrays.equals(dims, m.dims) : Arrays.equals(ranks(), m.ranks()));
  }

  @Override
  public int hashCode() {
    return 31 * root.deviceType.hashCode() + Arrays.hashCode(shape());
  }

  @Override
  public String toString() {
    return "DeviceMesh("
        + root.deviceType
        + ", "
        + Arrays.stream(dims)
            .map(d -> (d.name() == null ? "" : d.name() + "=") + d.size())
            .collect(Collectors.joining(", ", "(", ")"))
        + ")";
  }
}
