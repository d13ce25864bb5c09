/** The items that are selected in a list, and one action for several of them. */
import { computed, signal } from "@preact/signals";
import type { Store } from "../store.ts";
import { texts } from "../../texts/texts.ts";

/** One list's selection. */
export class Selection {
  /** Undefined while nothing is being selected. */
  readonly ids = signal<ReadonlySet<string> | undefined>(undefined);
  readonly isActive = computed(() => this.ids.value !== undefined);
  /** The last item that was pressed: where a range starts. */
  anchor: string | undefined;

  /** Starts selecting, with this item selected. */
  start(id?: string): void {
    this.ids.value = new Set(id === undefined ? [] : [id]);
    this.anchor = id;
  }

  /** Selects or deselects an item. */
  toggle(id: string): void {
    const ids = new Set(this.ids.peek());
    if (!ids.delete(id)) ids.add(id);
    this.ids.value = ids;
    this.anchor = id;
  }

  /** Selects everything from the anchor to an item. @param order All items in the order of the list. */
  extend(id: string, order: readonly string[]): void {
    const [from, to] = [order.indexOf(this.anchor ?? id), order.indexOf(id)].sort((a, b) => a - b);
    this.ids.value = new Set([...this.ids.peek() ?? [], id, ...from! < 0 ? [] : order.slice(from, to! + 1)]);
    this.anchor = id;
  }

  /** Selects all of these as well. */
  add(ids: readonly string[]): void {
    this.ids.value = new Set([...this.ids.peek() ?? [], ...ids]);
  }

  /** Ends selecting. */
  end(): void {
    this.ids.value = undefined;
  }
}

/**
 * Changes several items, and shows one message with one Undo for all that were changed. The first failure is shown.
 *
 * @param change Changes an item and returns what reverts it.
 * @param nameOf Names what was done with so many items.
 */
export async function changeAll<T>(
  store: Store,
  items: readonly T[],
  change: (item: T) => Promise<() => Promise<unknown>>,
  nameOf: (count: number) => string,
): Promise<void> {
  const reverts = await runAll(store, items, change);
  if (reverts.length === 0) return;
  const run = () => void runAll(store, reverts, (revert) => revert());
  store.toasts.show(nameOf(reverts.length), { action: { label: texts.undo, run } });
}

async function runAll<T, R>(store: Store, items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results = await Promise.allSettled(items.map(work));
  const failed = results.find((result) => result.status === "rejected");
  if (failed) store.report(failed.reason);
  return results.filter((result) => result.status === "fulfilled").map(({ value }) => value);
}
