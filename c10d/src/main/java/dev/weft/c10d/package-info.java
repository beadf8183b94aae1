/**
 * Ranks, process groups and collectives. {@code Distributed} is the way in for programs, {@code
 * ProcessGroup} the object behind it, {@code Backend} the service that moves data for one device
 * type, {@code LocalWorld} a world of threads in one JVM.
 */
@NullMarked
package dev.weft.c10d;

import org.jspecify.annotations.NullMarked;
