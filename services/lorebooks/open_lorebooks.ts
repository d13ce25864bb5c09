/** Opens the lorebook store and its key matcher. */
import { DocumentStore, type DocumentStoreOptions } from "../storage/documents/document_store.ts";
import { WorkerKeyMatcher } from "./key_matcher.ts";
import type { Lorebook } from "./lorebook_document.ts";
import { type LorebookHead, Lorebooks } from "./lorebooks.ts";

/** Dependencies of lorebooks. */
export interface LorebookRoomOptions
  extends Omit<DocumentStoreOptions<LorebookHead>, "kind" | "noun" | "titleOf" | "trash"> {
  trash: DocumentStoreOptions<LorebookHead>["trash"] & { register(kind: string, handler: DocumentTrash): void };
}

type DocumentTrash = Pick<DocumentStore<LorebookHead, Lorebook>, "restore" | "purge">;

/** The lorebook services. */
export interface LorebookRoom {
  lorebooks: Lorebooks;
  /** For `activate`. */
  keyMatcher: WorkerKeyMatcher;
}

const KIND = "lorebook";

/** Opens the store and the key matcher. */
export function openLorebooks(options: LorebookRoomOptions): { room: LorebookRoom; close(): void } {
  const store = new DocumentStore<LorebookHead, Lorebook>({
    ...options,
    kind: KIND,
    noun: KIND,
    titleOf: ({ name }) => name,
  });
  options.trash.register(KIND, store);
  const keyMatcher = new WorkerKeyMatcher();
  return { room: { lorebooks: new Lorebooks(store), keyMatcher }, close: () => keyMatcher.close() };
}
