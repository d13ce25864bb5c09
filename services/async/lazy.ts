/** Opens things when they are first asked for, and closes what was opened in reverse. */
import { AppError } from "../errors.ts";

/** Gives a thing back. */
export type Undo = () => void | Promise<void>;

/** Something that is opened once, when it is first asked for. */
export interface OnDemand<T> {
  /** Gives it, opened if need be. One that cannot be opened is tried again by whoever asks next. */
  (): Promise<T>;
  /** What is open or just being opened; `undefined` while nobody has asked. */
  readonly opened: Promise<T> | undefined;
}

/** Everything that is open, in the order in which it was opened. */
export class Openings {
  readonly #undo: Undo[] = [];
  readonly #underWay = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /** Remembers how something is given back. */
  onClose(undo: Undo): void {
    this.#undo.push(undo);
  }

  /**
   * Makes something that is opened when it is asked for.
   *
   * @param open Its `onClose` remembers how a part is given back: at the end, or at once when a later part fails.
   */
  onDemand<T>(open: (onClose: (undo: Undo) => void) => Promise<T>): OnDemand<T> {
    let opened: Promise<T> | undefined;
    const ask = () => {
      if (opened !== undefined) return opened;
      if (this.#closing !== undefined) {
        return Promise.reject(new AppError("not_available", "The server is shutting down"));
      }
      const opening = this.#open(open);
      opened = opening;
      this.#underWay.add(opening);
      opening.catch(() => opened = undefined).finally(() => this.#underWay.delete(opening));
      return opening;
    };
    return Object.defineProperty(ask, "opened", { get: () => opened }) as OnDemand<T>;
  }

  /** Waits for what is being opened, then gives everything back, the newest first. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #open<T>(open: (onClose: (undo: Undo) => void) => Promise<T>): Promise<T> {
    const parts: Undo[] = [];
    try {
      const made = await open((undo) => parts.push(undo));
      // Whatever it stands on was asked for in the opening, and so stands before it.
      this.#undo.push(...parts);
      return made;
    } catch (error) {
      for (const undo of parts.reverse()) await undo();
      throw error;
    }
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#underWay);
    for (const undo of this.#undo.splice(0).reverse()) await undo();
  }
}
