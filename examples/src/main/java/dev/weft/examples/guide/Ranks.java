package dev.weft.examples.guide;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** How many ranks run a program of the guide, as threads; 0 where it makes its own worlds. */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@interface Ranks {
  /** How many. */
  int value();
}
