/** Specifications of the commands. */
@NullMarked
package dev.weft.cli.doctor;

import org.jspecify.annotations.NullMarked;
