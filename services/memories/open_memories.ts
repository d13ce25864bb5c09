/** Opens memory: notes, and proposals of notes. */
import type { Core } from "../core/open_core.ts";
import { DocumentStore } from "../storage/documents/document_store.ts";
import { SealedSetting } from "../storage/documents/sealed_json.ts";
import { type Memories, openNotes } from "./memories.ts";
import { MemoryProposals, type MemoryUse, type ProposalFields } from "./memory_proposals.ts";

/** How far a chat was read for proposals. */
export interface ReadMark {
  /** The last message that was read. */
  messageId: string;
}

/** The services of memory. */
export interface MemoryServices {
  memories: Memories;
  proposals: MemoryProposals;
  /** When the reading began, and which notes chats confirmed. */
  use: SealedSetting<MemoryUse>;
  /** By the id of the chat. */
  readMarks: DocumentStore<ReadMark, null>;
}

/** Opens notes and proposals. */
export function openMemories(core: Core): MemoryServices {
  const { db, events, trash, now } = core;
  const sealer = core.sealer.forPurpose("memories");
  const options = { db, events, now, sealer, trash };
  const memories = openNotes(options);
  const use = new SealedSetting<MemoryUse>({ db, sealer, events }, {
    key: "memory_use",
    label: "The use of notes",
    defaults: { sinceMs: null, confirmed: {} },
  });
  const proposals = new MemoryProposals({
    memories,
    use,
    now,
    store: new DocumentStore<ProposalFields, null>({
      ...options,
      kind: "memory_proposal",
      noun: "proposal",
      titleOf: ({ text }) => text,
    }),
  });
  const readMarks = new DocumentStore<ReadMark, null>({
    ...options,
    kind: "memory_read",
    noun: "mark",
    titleOf: ({ messageId }) => messageId,
  });
  return { memories, proposals, readMarks, use };
}
