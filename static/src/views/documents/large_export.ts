/** Warns that an exported file exceeds the import limit. */
import { isExportTooLarge } from "../../api/versions.ts";
import type { Store } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Checks an export that the browser is downloading, and shows a note if it is too large. */
export function warnAboutLargeExport(store: Store, path: string): void {
  isExportTooLarge(store.api.client, path).then(
    (isTooLarge) => isTooLarge && store.toasts.show(texts.history.exportTooLarge),
    // The download itself shows failures.
    () => {},
  );
}
