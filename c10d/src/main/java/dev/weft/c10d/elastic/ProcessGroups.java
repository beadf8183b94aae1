package dev.weft.c10d.elastic;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Process groups by means of the machine's own commands, since Java has none. A signal to a group
 * reaches also the processes whose parent is gone. Thread-safe.
 */
final class ProcessGroups {
  private static final Logger log = LoggerFactory.getLogger(ProcessGroups.class);
  private static final boolean AVAILABLE = onPath("setsid") && onPath("sh");

  private ProcessGroups() {}

  static boolean available() {
    return AVAILABLE;
  }

  private static boolean onPath(String name) {
    String path = System.getenv("PATH");
    return path != null
        && Pattern.compile(File.pathSeparator, Pattern.LITERAL)
            .splitAsStream(path)
            .anyMatch(folder -> new File(folder, name).canExecute());
  }

  /** The command, as the leader of a session and group of its own; the process keeps its number. */
  static List<String> leading(List<String> command) {
    var result = new ArrayList<String>();
    result.add("setsid");
    result.addAll(command);
    return result;
  }

  /** Sends a signal to all processes of a group; to none if the group is empty. */
  static void signal(long group, String signal) {
    try {
      var kill =
          new ProcessBuilder("sh", "-c", "kill -s " + signal + " -- -" + group + " 2>/dev/null")
              .redirectErrorStream(true)
              .start();
      if (!kill.waitFor(5, TimeUnit.SECONDS)) {
        log.warn("sending {} to process group {} took more than 5 s", signal, group);
      }
    } catch (IOException e) {
      log.warn("cannot send {} to process group {}", signal, group, e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      log.warn("interrupted while sending {} to process group {}", signal, group);
    }
  }
}
