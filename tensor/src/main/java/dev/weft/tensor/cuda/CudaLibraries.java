package dev.weft.tensor.cuda;

import java.io.File;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Finds NVIDIA's libraries and loads them by their full path, so that the bindings, which name them
 * by their soname, get these. Thread-safe.
 *
 * <p>Searched in this order: the folders of {@code WEFT_CUDA_LIB_DIRS} (separated by colons; the
 * {@code site-packages} of a Python installation counts, too: its wheels keep the libraries under
 * {@code nvidia/*}{@code /lib}), {@code LD_LIBRARY_PATH}, {@code CUDA_HOME} and {@code CUDA_PATH},
 * {@code /usr/local/cuda*}, and the system's own folders. A library found nowhere is left to the
 * dynamic loader.
 */
public final class CudaLibraries {
  private static final Map<String, Found> FOUND = new LinkedHashMap<>();

  private CudaLibraries() {}

  /**
   * What became of a library.
   *
   * @param soname such as {@code libcudart.so.13}
   * @param path where it was found, or null when it was left to the dynamic loader
   * @param problem why it could not be loaded from there, or null
   */
  public record Found(String soname, @Nullable Path path, @Nullable String problem) {}

  /** Loads a library once; later calls tell what became of it. */
  public static Found load(String soname) {
    synchronized (FOUND) {
      Found before = FOUND.get(soname);
      if (before != null) {
        return before;
      }
      Path path = find(soname);
      @Nullable String problem = null;
      if (path != null) {
        try {
          System.load(path.toString());
        } catch (UnsatisfiedLinkError e) {
          problem = e.getMessage();
        }
      }
      Found found = new Found(soname, path, problem);
      FOUND.put(soname, found);
      return found;
    }
  }

  /** Where a library lies in the folders searched, or null. */
  public static @Nullable Path find(String soname) {
    for (Path folder : folders()) {
      Path file = folder.resolve(soname);
      if (Files.isRegularFile(file)) {
        return realPath(file);
      }
    }
    return null;
  }

  private static Path realPath(Path file) {
    try {
      return file.toRealPath();
    } catch (IOException e) {
      return file.toAbsolutePath();
    }
  }

  /** The folders searched, in order. */
  public static Set<Path> folders() {
    Set<Path> folders = new LinkedHashSet<>();
    for (Path given : paths(System.getenv("WEFT_CUDA_LIB_DIRS"))) {
      folders.add(given);
      folders.add(given.resolve("lib"));
      folders.addAll(children(given.resolve("nvidia"), "*", "lib"));
      folders.addAll(children(given, "*", "lib"));
    }
    folders.addAll(paths(System.getenv("LD_LIBRARY_PATH")));
    folders.addAll(paths(System.getProperty("java.library.path")));
    for (String home : new String[] {"CUDA_HOME", "CUDA_PATH"}) {
      for (Path root : paths(System.getenv(home))) {
        folders.add(root.resolve("lib64"));
        folders.add(root.resolve("lib"));
      }
    }
    folders.add(Path.of("/usr/local/cuda/lib64"));
    folders.addAll(children(Path.of("/usr/local"), "cuda-*", "lib64"));
    folders.addAll(children(Path.of("/usr/local"), "cuda-*", "lib"));
    folders.add(Path.of("/usr/lib/x86_64-linux-gnu"));
    folders.add(Path.of("/usr/lib64"));
    return folders;
  }

  private static List<Path> paths(@Nullable String list) {
    List<Path> paths = new ArrayList<>();
    if (list != null) {
      for (String entry : list.split(File.pathSeparator, -1)) {
        if (!entry.isBlank()) {
          paths.add(Path.of(entry));
        }
      }
    }
    return paths;
  }

  private static List<Path> children(Path folder, String pattern, String below) {
    List<Path> found = new ArrayList<>();
    if (Files.isDirectory(folder)) {
      try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder, pattern)) {
        for (Path entry : entries) {
          if (Files.isDirectory(entry.resolve(below))) {
            found.add(entry.resolve(below));
          }
        }
      } catch (IOException e) {
        // A folder that cannot be read holds nothing that could be loaded.
        return found;
      }
    }
    found.sort(null);
    return found;
  }
}
