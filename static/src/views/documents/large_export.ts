/** Says that a file which is being exported can't be imported here again. */
import { isExportTooLarge } from "../../api/versions.ts";
import type { Store } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Asks the server about an export that the browser is downloading, and shows a note when it is too large. */
export function warnAboutLargeExport(store: Store, path: string): void {
  isExportTooLarge(store.api.client, path).then(
    (isTooLarge) => isTooLarge && store.toasts.show(texts.history.exportTooLarge),
    // The download itself shows what failed.
    () => {},
  );
}
