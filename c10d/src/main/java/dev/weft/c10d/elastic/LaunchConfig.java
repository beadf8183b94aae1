package dev.weft.c10d.elastic;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What to start, how often, and how to treat it. Immutable; safe to share between threads. */
public final class LaunchConfig {
  private final String mainClass;
  private final ImmutableList<String> arguments;
  private final int nprocPerNode;
  private final String classPath;
  private final ImmutableList<String> jvmArguments;
  private final ImmutableMap<String, String> environment;
  private final boolean shareGpus;
  private final String masterAddress;
  private final int masterPort;
  private final String runId;
  private final boolean prefixOutput;
  private final LogOptions logs;
  private final Duration noticePeriod;
  private final Duration gracePeriod;
  private final OutputStream out;
  private final OutputStream err;
  private final @Nullable LiveScreen screen;

  private LaunchConfig(Builder builder) {
    mainClass = builder.mainClass;
    arguments = builder.arguments;
    nprocPerNode = builder.nprocPerNode;
    classPath = builder.classPath;
    jvmArguments = builder.jvmArguments;
    environment = builder.environment;
    shareGpus = builder.shareGpus;
    masterAddress = builder.masterAddress;
    masterPort = builder.masterPort;
    runId = builder.runId;
    prefixOutput = builder.prefixOutput;
    logs = builder.logs;
    noticePeriod = builder.noticePeriod;
    gracePeriod = builder.gracePeriod;
    out = builder.out;
    err = builder.err;
    screen = builder.screen;
  }

  /**
   * Starts a configuration.
   *
   * @param mainClass the class whose {@code main} each rank runs
   * @param nprocPerNode how many ranks to start on this machine
   * @return a builder
   */
  public static Builder of(String mainClass, int nprocPerNode) {
    return new Builder(mainClass, nprocPerNode);
  }

  String mainClass() {
    return mainClass;
  }

  List<String> arguments() {
    return arguments;
  }

  int nprocPerNode() {
    return nprocPerNode;
  }

  String classPath() {
    return classPath;
  }

  List<String> jvmArguments() {
    return jvmArguments;
  }

  Map<String, String> environment() {
    return environment;
  }

  boolean shareGpus() {
    return shareGpus;
  }

  String masterAddress() {
    return masterAddress;
  }

  int masterPort() {
    return masterPort;
  }

  String runId() {
    return runId;
  }

  boolean prefixOutput() {
    return prefixOutput;
  }

  LogOptions logs() {
    return logs;
  }

  Duration noticePeriod() {
    return noticePeriod;
  }

  Duration gracePeriod() {
    return gracePeriod;
  }

  OutputStream out() {
    return out;
  }

  OutputStream err() {
    return err;
  }

  @Nullable LiveScreen screen() {
    return screen;
  }

  /** Collects what is optional. Not thread-safe. */
  public static final class Builder {
    private final String mainClass;
    private final int nprocPerNode;
    private ImmutableList<String> arguments = ImmutableList.of();
    private String classPath = "";
    private ImmutableList<String> jvmArguments = ImmutableList.of();
    private ImmutableMap<String, String> environment = ImmutableMap.of();
    private boolean shareGpus;
    private String masterAddress = "127.0.0.1";
    private int masterPort;
    private String runId = "none";
    private boolean prefixOutput = true;
    private LogOptions logs = LogOptions.SHOW_ALL;
    private Duration noticePeriod = Duration.ofSeconds(3);
    private Duration gracePeriod = Duration.ofSeconds(5);
    private OutputStream out = new FileOutputStream(FileDescriptor.out);
    private OutputStream err = new FileOutputStream(FileDescriptor.err);
    private @Nullable LiveScreen screen;

    private Builder(String mainClass, int nprocPerNode) {
      if (mainClass.isBlank()) {
        throw new IllegalArgumentException("mainClass is empty; expected the name of a class");
      }
      if (nprocPerNode < 1) {
        throw new IllegalArgumentException(
            "nprocPerNode is " + nprocPerNode + "; expected 1 or more");
      }
      this.mainClass = mainClass;
      this.nprocPerNode = nprocPerNode;
    }

    /**
     * Sets the arguments of the main class.
     *
     * @param arguments the arguments
     * @return this
     */
    public Builder arguments(List<String> arguments) {
      this.arguments = ImmutableList.copyOf(arguments);
      return this;
    }

    /**
     * Sets where the main class is found; Weft's own class path is searched behind it.
     *
     * @param classPath folders and archives, separated as for {@code java -cp}
     * @return this
     */
    public Builder classPath(String classPath) {
      this.classPath = classPath;
      return this;
    }

    /**
     * Sets the options of the JVMs.
     *
     * @param jvmArguments for instance {@code -Xmx2g}
     * @return this
     */
    public Builder jvmArguments(List<String> jvmArguments) {
      this.jvmArguments = ImmutableList.copyOf(jvmArguments);
      return this;
    }

    /**
     * Sets variables on top of those of this process.
     *
     * @param environment names and values
     * @return this
     */
    public Builder environment(Map<String, String> environment) {
      this.environment = ImmutableMap.copyOf(environment);
      return this;
    }

    /**
     * Lets several ranks use one GPU, for tests: each gets an {@code NCCL_HOSTID} of its own, so
     * that NCCL takes them for different machines and connects them by sockets. Right, but slow.
     * Off by default.
     *
     * @param shareGpus whether to
     * @return this
     */
    public Builder shareGpus(boolean shareGpus) {
      this.shareGpus = shareGpus;
      return this;
    }

    /**
     * Sets where the ranks find the launcher's store. Loopback by default.
     *
     * @param masterAddress a host name or address of this machine
     * @return this
     */
    public Builder masterAddress(String masterAddress) {
      this.masterAddress = masterAddress;
      return this;
    }

    /**
     * Sets the port of the launcher's store. By default it takes a free one.
     *
     * @param masterPort a port, or 0 for a free one
     * @return this
     */
    public Builder masterPort(int masterPort) {
      this.masterPort = masterPort;
      return this;
    }

    /**
     * Sets the name of the run, which the ranks find in {@code TORCHELASTIC_RUN_ID}.
     *
     * @param runId the name
     * @return this
     */
    public Builder runId(String runId) {
      this.runId = runId;
      return this;
    }

    /**
     * Says whether each line of output starts with {@code [rank]| }, or with {@code [node:rank]| }
     * where there are several nodes.
     *
     * @param prefixOutput true by default
     * @return this
     */
    public Builder prefixOutput(boolean prefixOutput) {
      this.prefixOutput = prefixOutput;
      return this;
    }

    /**
     * Sets which output is shown, and whether it is kept in files.
     *
     * @param logs everything is shown and nothing kept by default
     * @return this
     */
    public Builder logs(LogOptions logs) {
      this.logs = logs;
      return this;
    }

    /**
     * Sets how long the other ranks may go on after the first failure, to notice it and say so.
     *
     * @param noticePeriod three seconds by default
     * @return this
     */
    public Builder noticePeriod(Duration noticePeriod) {
      this.noticePeriod = noticePeriod;
      return this;
    }

    /**
     * Sets how long a rank may take to end after SIGTERM, before it is killed.
     *
     * @param gracePeriod five seconds by default
     * @return this
     */
    public Builder gracePeriod(Duration gracePeriod) {
      this.gracePeriod = gracePeriod;
      return this;
    }

    /**
     * Sets where the output of the ranks goes.
     *
     * @param out for what they write to their standard output
     * @param err for what they write to their standard error, and the launcher's own messages
     * @return this
     */
    public Builder output(OutputStream out, OutputStream err) {
      this.out = out;
      this.err = err;
      return this;
    }

    /**
     * Shows on a terminal where the ranks are, and their output above that.
     *
     * @param screen the terminal, in the place of {@link #output}
     * @return this
     */
    public Builder live(LiveScreen screen) {
      this.screen = screen;
      return output(screen.out(), screen.err());
    }

    /**
     * Makes the configuration.
     *
     * @return the configuration
     */
    public LaunchConfig build() {
      return new LaunchConfig(this);
    }
  }
}
