package dev.weft.cli.doctor;

import org.jspecify.annotations.Nullable;

/**
 * What a check has found. Immutable.
 *
 * @param state how bad it is
 * @param subject what was looked at
 * @param text what is there
 * @param mend the one command, or setting, that mends it; null where nothing needs to be
 */
record Finding(State state, String subject, String text, @Nullable String mend) {
  enum State {
    /** It works. */
    OK,
    /** It is not there, and most runs need it not. */
    NO,
    /** It works, and will hurt some runs. */
    WARN,
    /** Weft does not work without. */
    BROKEN
  }

  static Finding ok(String subject, String text) {
    return new Finding(State.OK, subject, text, null);
  }

  static Finding no(String subject, String text, String mend) {
    return new Finding(State.NO, subject, text, mend);
  }

  static Finding warn(String subject, String text, String mend) {
    return new Finding(State.WARN, subject, text, mend);
  }

  static Finding broken(String subject, String text, String mend) {
    return new Finding(State.BROKEN, subject, text, mend);
  }
}
