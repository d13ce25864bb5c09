/** Runs one action for several items, with one message and one Undo for all of them. */
import type { Store } from "../store.ts";
import { texts } from "../../texts/texts.ts";

/**
 * Changes several items and offers one Undo for all that were changed. The first failure is shown.
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

/** Downloads several conversations or characters as one ZIP file. Shows a failure. */
export async function downloadAll(
  store: Store,
  body: { kind: "conversations" | "characters"; ids: readonly string[]; format: string },
): Promise<void> {
  try {
    const answer = await store.api.client.send("POST", "/api/export", { body });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(await answer.blob());
    link.download = `parlor-${new Date().toISOString().slice(0, 10)}.zip`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  } catch (thrown) {
    store.report(thrown);
  }
}
