package dev.weft.c10d.elastic;

import java.io.File;
import java.io.IOException;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.openblas.global.openblas;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * JavaCPP unpacks native libraries into a folder of the user at their first use, under a lock:
 * ranks that start together on a fresh machine would wait for each other. The launcher unpacks them
 * first.
 */
final class NativeCache {
  private static final Logger log = LoggerFactory.getLogger(NativeCache.class);

  private NativeCache() {}

  /** Unpacks the library that every rank needs, unless it is there. */
  static void warm() {
    try {
      String jar =
          new File(openblas.class.getProtectionDomain().getCodeSource().getLocation().getPath())
              .getName()
              .replaceFirst("\\.jar$", "");
      File[] there = Loader.getCacheDir().listFiles((folder, name) -> name.startsWith(jar));
      if (there == null || there.length == 0) {
        log.debug("unpacking the native libraries of {}", jar);
        String unused = Loader.load(openblas.class);
      }
    } catch (IOException | LinkageError e) {
      log.info("native libraries could not be unpacked beforehand; the ranks will try", e);
    }
  }
}
