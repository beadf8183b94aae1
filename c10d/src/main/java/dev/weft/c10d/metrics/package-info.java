/** Numbers of a running rank for a monitoring system, in Prometheus' text format. */
@NullMarked
package dev.weft.c10d.metrics;

import org.jspecify.annotations.NullMarked;
