/** The programs of {@code docs/guide}, which the tests compile, run and compare with the text. */
@NullMarked
package dev.weft.examples.guide;

import org.jspecify.annotations.NullMarked;
