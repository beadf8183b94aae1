/**
 * Pipelines: a model cut into stages that lie on different ranks, schedules of their forwards and
 * backwards, and what runs them.
 */
@NullMarked
package dev.weft.parallel.pipeline;

import org.jspecify.annotations.NullMarked;
