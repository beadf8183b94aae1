/**
 * Starts and supervises the processes of a world. {@code LocalLauncher} runs all ranks of one
 * machine: it hosts their store, passes on their output, and ends all when one fails. {@code
 * ElasticAgent} is one of several nodes, which agree in a store on who takes part ({@code
 * RunState}, changed only through {@code Ledger}) and start over when ranks fail or nodes come and
 * go. {@code WorkerGroup} holds the processes, {@code RankMain} is what runs in each of them before
 * the user's program.
 */
@NullMarked
package dev.weft.c10d.elastic;

import org.jspecify.annotations.NullMarked;
