/**
 * The recipes of {@code docs/recipes.md}: whole programs of a page, each for one thing to do. The
 * page shows the files as they are here, and what they print.
 */
@NullMarked
package dev.weft.examples.recipes;

import org.jspecify.annotations.NullMarked;
