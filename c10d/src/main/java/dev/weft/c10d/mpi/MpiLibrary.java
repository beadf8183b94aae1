package dev.weft.c10d.mpi;

import static java.util.stream.Collectors.joining;

import com.sun.jna.NativeLibrary;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The MPI library of this process: the one that {@value #VARIABLE} names, else the one of the
 * launcher that started the process, else the first that is found. Looked for once. Thread-safe.
 */
final class MpiLibrary {
  static final String VARIABLE = "WEFT_MPI_LIBRARY";

  private static final List<String> OPEN_MPI = List.of("libmpi.so.40", "libmpi.40.dylib");
  private static final List<String> MPICH =
      List.of("libmpich.so.12", "libmpi.so.12", "libmpi.12.dylib");

  private static @Nullable MpiLibrary found;
  private static @Nullable String missing;

  private final String name;
  private final MpiAbi abi;

  private MpiLibrary(String name, MpiAbi abi) {
    this.name = name;
    this.abi = abi;
  }

  String name() {
    return name;
  }

  MpiAbi abi() {
    return abi;
  }

  /** Why there is none, with what to do; null when there is one. */
  static synchronized @Nullable String unavailableReason() {
    if (found == null && missing == null) {
      look(System.getenv());
    }
    return missing;
  }

  /** The library; only where there is one. */
  static synchronized MpiLibrary get() {
    String reason = unavailableReason();
    MpiLibrary there = found;
    if (there == null) {
      throw new UnsupportedOperationException(String.valueOf(reason));
    }
    return there;
  }

  private static void look(Map<String, String> environment) {
    Map<String, String> tried = new LinkedHashMap<>();
    for (String name : candidates(environment)) {
      try {
        found = load(name);
        return;
      } catch (UnsatisfiedLinkError e) {
        // The first lines say what is wrong, the rest where else was looked.
        String why = String.valueOf(e.getMessage()).lines().limit(2).collect(joining(" "));
        tried.put(name, why);
      } catch (NoClassDefFoundError e) {
        missing = "JNA (net.java.dev.jna:jna) is not on the class path: " + e.getMessage();
        return;
      }
    }
    missing = explain(environment, tried);
  }

  private static MpiLibrary load(String name) {
    // Some libraries take over signals as soon as they are loaded.
    Signals before = Signals.save();
    try {
      NativeLibrary library = NativeLibrary.getInstance(name);
      MpiAbi abi = MpiAbi.of(library);
      Mpi.bind(library);
      return new MpiLibrary(name, abi);
    } finally {
      before.restore(name);
    }
  }

  static String explain(Map<String, String> environment, Map<String, String> tried) {
    String named = environment.get(VARIABLE);
    return named != null && !named.isBlank()
        ? VARIABLE
            + " is '"
            + named
            + "', which cannot be loaded: "
            + String.join("; ", tried.values())
        : "no MPI library was found (looked for "
            + String.join(", ", tried.keySet())
            + "); install Open MPI 4 or 5 (Debian, Ubuntu: apt-get install openmpi-bin"
            + " libopenmpi-dev; RHEL: dnf install openmpi) or MPICH (apt-get install mpich), or set"
            + " "
            + VARIABLE
            + " to the path of its libmpi";
  }

  /** Names to try, best first. */
  static List<String> candidates(Map<String, String> environment) {
    String named = environment.get(VARIABLE);
    if (named != null && !named.isBlank()) {
      return List.of(named.trim());
    }
    boolean mpich =
        environment.containsKey("PMI_RANK") && !environment.containsKey("OMPI_COMM_WORLD_RANK");
    List<String> names = new ArrayList<>(mpich ? MPICH : OPEN_MPI);
    names.addAll(mpich ? OPEN_MPI : MPICH);
    names.add("libmpi.so");
    return names;
  }
}
