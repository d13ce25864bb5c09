/** Publishes changes to listeners. Events contain names only, never content. */

import { getErrorMessage } from "../errors.ts";
import type { Log } from "../log.ts";

/** One change. */
export interface ChangeEvent {
  /** What changed, such as `"conversation"`, `"draft"`, `"job"`. */
  kind: string;
  /** ID of the changed object. */
  id: string;
  /** Its new revision, if it has one. */
  revision?: number;
}

/** Kind of the event after rows were restored behind the back of their service: what it has in memory is outdated. */
export const RESTORED = "restored";

/** Publishes changes. */
export interface EventHub {
  /** Calls every listener, in the order of subscription. Errors of a listener are logged. */
  publish(event: ChangeEvent): void;
  /**
   * Adds a listener. It's called synchronously, so it should only record the event.
   *
   * @returns A function that removes the listener. Can be called twice.
   */
  subscribe(listener: (event: ChangeEvent) => void): () => void;
}

/** Creates a hub without listeners. */
export function createEventHub(log: Log): EventHub {
  // Wrapped, so that a function subscribed twice is two listeners.
  const listeners = new Set<{ listener: (event: ChangeEvent) => void }>();
  return {
    publish(event) {
      for (const entry of [...listeners]) {
        if (!listeners.has(entry)) continue; // Removed by an earlier listener
        try {
          entry.listener(event);
        } catch (error) {
          log("error", "An event listener failed", { kind: event.kind, error: getErrorMessage(error) });
        }
      }
    },
    subscribe(listener) {
      const entry = { listener };
      listeners.add(entry);
      return () => {
        listeners.delete(entry);
      };
    },
  };
}
