/** Specifications of what tells why a job hangs or fails. */
@NullMarked
package dev.weft.c10d.debug;

import org.jspecify.annotations.NullMarked;
