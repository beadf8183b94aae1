/** Faults at every stage of an operation: each ends with an error that names the culprit. */
@org.jspecify.annotations.NullMarked
package dev.weft.c10d.faults;
