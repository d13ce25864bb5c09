/** Short messages at the edge of the page, some with a way back. */
import { signal } from "@preact/signals";

/** How long a message stays; long enough to read it and to press Undo. */
const SHOW_MS = 6000;

/** One message. */
export interface Toast {
  id: number;
  text: string;
  isError: boolean;
  action?: { label: string; run: () => void };
}

/** The messages that are shown now, oldest first. */
export class Toasts {
  readonly items = signal<Toast[]>([]);
  #nextId = 1;
  #pending = new Map<number, { timer: ReturnType<typeof setTimeout>; commit: (isLeaving: boolean) => void }>();

  /** Shows a text for a while. */
  show(text: string, options: { isError?: boolean; action?: Toast["action"] } = {}): void {
    const { action } = options;
    const run = () => {
      this.#forget(id);
      action?.run();
    };
    const id = this.#add(text, options.isError ?? false, action && { ...action, run }, () => {});
  }

  /**
   * Offers Undo for something that has only been hidden so far; `commit` makes it real once the offer ends.
   *
   * @param commit Called once, with true when the page is going away, unless `undo` was called.
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

  /** Keeps a message while somebody is at it; let go, its time begins anew. */
  hold(id: number, isHeld: boolean): void {
    const pending = this.#pending.get(id);
    if (!pending) return;
    clearTimeout(pending.timer);
    if (!isHeld) pending.timer = setTimeout(() => this.dismiss(id), SHOW_MS);
  }

  /** Ends a message; what it could have undone becomes real. */
  dismiss(id: number, isLeaving = false): void {
    const commit = this.#pending.get(id)?.commit;
    this.#forget(id);
    commit?.(isLeaving);
  }

  /** Makes everything real that still could be undone: the page goes away. */
  flush(): void {
    for (const id of [...this.#pending.keys()]) this.dismiss(id, true);
  }

  #add(text: string, isError: boolean, action: Toast["action"], commit: (isLeaving: boolean) => void): number {
    const id = this.#nextId++;
    this.#pending.set(id, { timer: setTimeout(() => this.dismiss(id), SHOW_MS), commit });
    this.items.value = [...this.items.value, { id, text, isError, action }];
    return id;
  }

  #forget(id: number): void {
    clearTimeout(this.#pending.get(id)?.timer);
    this.#pending.delete(id);
    this.items.value = this.items.value.filter((toast) => toast.id !== id);
  }
}
