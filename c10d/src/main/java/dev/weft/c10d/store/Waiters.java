package dev.weft.c10d.store;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Who waits for which key at a server, in the order of arrival. Touched by the server's event loop
 * only.
 */
final class Waiters {
  private final Map<String, Set<ServerSession>> byKey = new HashMap<>();

  void add(ServerSession session, String key) {
    byKey.computeIfAbsent(key, k -> new LinkedHashSet<>()).add(session);
    session.awaited().add(key);
  }

  /** The key has been written: nobody waits for it any longer. */
  void wake(String key) {
    Set<ServerSession> sessions = byKey.remove(key);
    if (sessions == null) {
      return;
    }
    for (ServerSession session : sessions) {
      session.awaited().remove(key);
      if (session.awaited().isEmpty()) {
        session.release();
      }
    }
  }

  /** A queue has one element more: who misses nothing else goes first, and alone. */
  void wakeOne(String key) {
    Set<ServerSession> sessions = byKey.get(key);
    if (sessions == null) {
      return;
    }
    List<ServerSession> inOrder = new ArrayList<>(sessions);
    for (ServerSession session : inOrder) {
      remove(session, key);
      session.awaited().remove(key);
      if (session.awaited().isEmpty()) {
        session.release();
        return;
      }
    }
  }

  /** The session waits for nothing any more. */
  void forget(ServerSession session) {
    for (String key : session.awaited()) {
      remove(session, key);
    }
    session.awaited().clear();
  }

  private void remove(ServerSession session, String key) {
    Set<ServerSession> sessions = byKey.get(key);
    if (sessions != null) {
      sessions.remove(session);
      if (sessions.isEmpty()) {
        byKey.remove(key);
      }
    }
  }
}
