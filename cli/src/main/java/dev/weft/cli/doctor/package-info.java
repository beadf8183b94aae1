/** {@code weft doctor}: what works on a machine, and between machines, and how to mend the rest. */
@NullMarked
package dev.weft.cli.doctor;

import org.jspecify.annotations.NullMarked;
