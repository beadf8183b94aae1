package dev.weft.c10d.host;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * The messages of one {@link Key} as they come; one thread waits for them. Made by whichever comes
 * first, a message or the waiter.
 */
final class Inbox {
  private final List<Message> messages = new ArrayList<>(4);
  private volatile int count;
  private int needed = Integer.MAX_VALUE;
  private @Nullable Thread waiter;
  private boolean discarded;

  void add(Message message) {
    Thread wake = null;
    synchronized (this) {
      if (!discarded) {
        messages.add(message);
        count = messages.size();
        if (count >= needed) {
          wake = waiter;
        }
        message = null;
      }
    }
    if (message != null) {
      release(message);
    }
    LockSupport.unpark(wake);
  }

  int count() {
    return count;
  }

  /** Says for how many the thread waits. */
  synchronized void expect(int number, Thread thread) {
    needed = number;
    waiter = thread;
  }

  synchronized List<Message> messages() {
    return List.copyOf(messages);
  }

  /** Lets go of what has come and of what still comes. */
  void discard() {
    List<Message> all;
    synchronized (this) {
      discarded = true;
      all = List.copyOf(messages);
      messages.clear();
      count = 0;
    }
    all.forEach(Inbox::release);
  }

  private static void release(Message message) {
    Payload payload = message.payload();
    if (payload != null) {
      payload.release();
    }
  }
}
