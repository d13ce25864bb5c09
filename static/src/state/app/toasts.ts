/** Toasts, some with Undo. */
import { signal } from "@preact/signals";

/** How long a toast stays, in milliseconds. */
const SHOW_MS = 6000;
/** How long a toast with a button stays: enough to read it and reach the button by keyboard. */
const SHOW_ACTION_MS = 12_000;

/** One toast. */
export interface Toast {
  id: number;
  text: string;
  isError: boolean;
  action?: { label: string; run: () => void };
}

/** The visible toasts, oldest first. */
export class ToastQueue {
  readonly items = signal<Toast[]>([]);
  #nextId = 1;
  #pending = new Map<
    number,
    { showMs: number; timer: ReturnType<typeof setTimeout>; commit: (isLeaving: boolean) => void; isOffer: boolean }
  >();

  /** Shows a text for a while. */
  show(text: string, options: { isError?: boolean; action?: Toast["action"] } = {}): void {
    const { action } = options;
    const run = () => {
      this.#forget(id);
      action?.run();
    };
    const id = this.#add(text, options.isError ?? false, action && { ...action, run });
  }

  /**
   * Offers Undo for something that is only hidden so far. `commit` runs when the offer ends.
   *
   * @param commit Called once unless `undo` was called, with true if the page is closing.
   */
  offerUndo(text: string, label: string, undo: () => void, commit: (isLeaving: boolean) => void): void {
    const id = this.#add(text, false, {
      label,
      run: () => {
        this.#forget(id);
        undo();
      },
    }, commit);
  }

  /** Dismisses what was only said: after Send it's out of date. What can still be undone stays. */
  dismissNotes(): void {
    for (const [id, { isOffer }] of [...this.#pending]) if (!isOffer) this.dismiss(id);
  }

  /** Keeps a toast while it is hovered or focused; then its time restarts. */
  hold(id: number, isHeld: boolean): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    clearTimeout(pending.timer);
    if (!isHeld) pending.timer = setTimeout(() => this.dismiss(id), pending.showMs);
  }

  /** Dismisses a toast, which commits what it could have undone. */
  dismiss(id: number, isLeaving = false): void {
    const commit = this.#pending.get(id)?.commit;
    this.#forget(id);
    commit?.(isLeaving);
  }

  /** Commits everything that could still be undone: the page is closing. */
  flush(): void {
    for (const id of [...this.#pending.keys()]) this.dismiss(id, true);
  }

  #add(text: string, isError: boolean, action: Toast["action"], commit?: (isLeaving: boolean) => void): number {
    const id = this.#nextId++;
    const showMs = action === undefined ? SHOW_MS : SHOW_ACTION_MS;
    const timer = setTimeout(() => this.dismiss(id), showMs);
    this.#pending.set(id, { showMs, timer, commit: commit ?? (() => {}), isOffer: commit !== undefined });
    this.items.value = [...this.items.value, { id, text, isError, action }];
    return id;
  }

  #forget(id: number): void {
    clearTimeout(this.#pending.get(id)?.timer);
    this.#pending.delete(id);
    this.items.value = this.items.value.filter((toast) => toast.id !== id);
  }
}
