/** Tells whoever listens what changed. It carries names only, never content. */

import { messageOf } from "../errors.ts";

/** One change. */
export interface ChangeEvent {
  /** What changed, such as `"conversation"`, `"draft"`, `"job"`. */
  kind: string;
  /** Id of the changed thing. */
  id: string;
  /** Its new revision, where it has one. */
  revision?: number;
}

/** The one place where changes are announced. */
export interface EventHub {
  /** Tells every listener, in the order they came; a listener that throws is reported on stderr and harms nobody. */
  publish(event: ChangeEvent): void;
  /**
   * Adds a listener, called at once on every publish, so it should only note the event down.
   *
   * @returns Ends it; may be called twice.
   */
  subscribe(listener: (event: ChangeEvent) => void): () => void;
}

/** Makes a hub without listeners. */
export function createEventHub(): EventHub {
  // Wrapped, so that the same function subscribed twice is two listeners.
  const listeners = new Set<{ listener: (event: ChangeEvent) => void }>();
  return {
    publish(event) {
      for (const entry of [...listeners]) {
        if (!listeners.has(entry)) continue; // ended by a listener before it
        try {
          entry.listener(event);
        } catch (error) {
          console.error(`An event listener failed on a change of kind "${event.kind}": ${messageOf(error)}`);
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
