/**
 * Key-value stores through which ranks find each other: one over TCP that speaks PyTorch's wire
 * protocol, one in a shared file, one in memory, and a wrapper that prefixes keys. {@code Store} is
 * the contract, {@code Table} the semantics that all of them share, {@code TcpStoreServer} and
 * {@code StoreClient} the two ends of the wire.
 */
@NullMarked
package dev.weft.c10d.store;

import org.jspecify.annotations.NullMarked;
