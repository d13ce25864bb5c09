/** Opens resources on first use and closes them in reverse order. */
import { AppError } from "../errors.ts";

/** Closes one resource. */
export type CloseHook = () => void | Promise<void>;

/** A resource that opens on first use. */
export interface Lazy<T> {
  /** Returns the resource and opens it first if needed. After a failure the next call tries again. */
  (): Promise<T>;
  /** The resource, open or being opened; `undefined` if it was never used. */
  readonly opened: Promise<T> | undefined;
}

/** Resources that are open, in the order in which they opened. */
export class LazyScope {
  readonly #hooks: CloseHook[] = [];
  readonly #opening = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  /** Adds a hook for `close`. */
  onClose(hook: CloseHook): void {
    this.#hooks.push(hook);
  }

  /**
   * Creates a resource that opens on first use.
   *
   * @param open Opens it. The hooks it adds with `onClose` run when the scope closes, or at once if `open` throws.
   */
  lazy<T>(open: (onClose: (hook: CloseHook) => void) => Promise<T>): Lazy<T> {
    let opened: Promise<T> | undefined;
    const get = () => {
      if (opened !== undefined) return opened;
      if (this.#closing !== undefined) {
        return Promise.reject(new AppError("not_available", "The server is shutting down"));
      }
      const opening = this.#open(open);
      opened = opening;
      this.#opening.add(opening);
      opening.catch(() => opened = undefined).finally(() => this.#opening.delete(opening));
      return opening;
    };
    return Object.defineProperty(get, "opened", { get: () => opened }) as Lazy<T>;
  }

  /** Waits for resources that are being opened, then closes all of them, the newest first. */
  close(): Promise<void> {
    return this.#closing ??= this.#close();
  }

  async #open<T>(open: (onClose: (hook: CloseHook) => void) => Promise<T>): Promise<T> {
    const hooks: CloseHook[] = [];
    try {
      const resource = await open((hook) => hooks.push(hook));
      // Only now, because resources that this one uses may have opened in the meantime and must close after it.
      this.#hooks.push(...hooks);
      return resource;
    } catch (error) {
      for (const hook of hooks.reverse()) await hook();
      throw error;
    }
  }

  async #close(): Promise<void> {
    await Promise.allSettled(this.#opening);
    for (const hook of this.#hooks.splice(0).reverse()) await hook();
  }
}
