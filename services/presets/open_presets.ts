/** Opens the preset store. */
import { DocumentStore, type DocumentStoreOptions } from "../storage/documents/document_store.ts";
import type { PresetDocument } from "./preset_document.ts";
import { type PresetHead, Presets } from "./presets.ts";

const KIND = "preset";

/** Opens the preset store. @param options.chosenId Returns the preset id of the settings. */
export function openPresets(
  options: Omit<DocumentStoreOptions<PresetHead>, "kind" | "noun" | "titleOf" | "trash"> & {
    trash: DocumentStoreOptions<PresetHead>["trash"] & {
      register(kind: string, handler: Pick<DocumentStore<PresetHead, PresetDocument>, "restore" | "purge">): void;
    };
    chosenId(): string | null;
  },
): Presets {
  const { chosenId, ...rest } = options;
  const store = new DocumentStore<PresetHead, PresetDocument>({
    ...rest,
    kind: KIND,
    noun: KIND,
    titleOf: ({ name }) => name,
  });
  options.trash.register(KIND, store);
  return new Presets({ store, chosenId });
}
