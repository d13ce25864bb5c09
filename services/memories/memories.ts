/**
 * Stored notes and their earlier versions, opened together with proposals. A note is an encrypted document with its
 * fields in the head and its versions in the body.
 */
import { AppError } from "../errors.ts";
import { DocumentStore, type DocumentStoreOptions, type OpenedDocument } from "../storage/documents/document_store.ts";
import type { ExpectedVersion } from "../storage/preconditions.ts";
import type { IsExpired, RetentionClock } from "../storage/retention_clock.ts";
import type { VersionCause } from "../storage/versions.ts";
import { EVERYTHING, type Memory, type MemoryFields, type MemoryScopeKind, parseMemoryText } from "./memory.ts";
import type { Sealer } from "../crypto/sealer.ts";
import { SealedSetting } from "../storage/documents/sealed_document.ts";
import { MemoryProposals, type MemoryUse, type ProposalFields } from "./memory_proposals.ts";

/** An earlier state of a note. */
export interface MemoryVersion {
  /** Starts at 1. Numbers are never reused. */
  n: number;
  /** When it was replaced, in milliseconds since 1970. */
  createdAtMs: number;
  cause: VersionCause;
  fields: MemoryFields;
}

/** The body of a note. */
interface MemoryBody {
  /** Oldest first. */
  versions: MemoryVersion[];
  /** The highest number of a version. */
  last: number;
}

/** Values to store. Omitted ones don't change. */
export interface MemoryInput extends Partial<Omit<MemoryFields, "source">> {
  /** `null` clears it. */
  source?: MemoryFields["source"] | null;
  /** When a new note was created; the default is now. */
  createdAtMs?: number;
}

/** Which notes to list. */
export interface MemoryFilter {
  kind?: MemoryScopeKind;
  /** ID of the character or persona, or name of the folder. */
  id?: string;
}

type Store = DocumentStore<MemoryFields, MemoryBody>;

/** Like other resources, see docs/decisions/0030-earlier-versions.md. */
const MAX_VERSIONS = 50;
const VERSION_AGE_MS = 30 * 24 * 60 * 60 * 1000;

/** Stores notes. */
export class Memories {
  readonly #store: Store;
  readonly #now: () => number;
  readonly #isExpired: IsExpired;

  constructor({ store, now, isExpired }: { store: Store; now(): number; isExpired: IsExpired }) {
    this.#store = store;
    this.#now = now;
    this.#isExpired = isExpired;
  }

  /** Lists notes, newest first. Unreadable notes have no fields and are only listed without a filter. */
  list({ kind, id }: MemoryFilter = {}): Memory[] {
    return this.#store.list().map(({ head, ...frame }) => ({ ...frame, fields: head })).filter(({ fields }) =>
      (kind === undefined || fields?.scope.kind === kind) && (id === undefined || fields?.scope.id === id)
    );
  }

  /** Finds a readable note. */
  find(id: string): (Memory & { fields: MemoryFields }) | undefined {
    const found = this.#store.list().find((one) => one.id === id);
    return found?.head === undefined ? undefined : { ...found, fields: found.head };
  }

  /** @throws {AppError} `not_found`; `internal` if it can't be read. */
  async get(id: string): Promise<Memory> {
    return toMemory(await this.#store.get(id));
  }

  /**
   * Creates or changes a note. The previous state becomes a version.
   *
   * @throws {AppError} `invalid_request` for a new note without text, or a text that is empty or too long;
   *   `revision_mismatch`; `conflict` for an id that differs from another only in case
   */
  async put(id: string, input: MemoryInput, expected?: ExpectedVersion): Promise<Memory & { isNew: boolean }> {
    const text = input.text === undefined ? undefined : parseMemoryText(input.text);
    const saved = await this.#store.put(id, (before) => {
      const source = input.source === null ? undefined : input.source ?? before?.head.source;
      const fields: MemoryFields = {
        text: text ?? before?.head.text ?? parseMemoryText(""),
        scope: input.scope ?? before?.head.scope ?? EVERYTHING,
        pinned: input.pinned ?? before?.head.pinned ?? false,
        ...(source && { source }),
      };
      return { head: fields, body: this.#keepVersion(before, fields, "put"), createdAtMs: input.createdAtMs };
    }, expected);
    return { ...toMemory(saved), isNew: saved.isNew };
  }

  /** Moves a note to the trash. @throws {AppError} `not_found`, `revision_mismatch` */
  remove(id: string, expected?: ExpectedVersion): Promise<void> {
    return this.#store.remove(id, expected);
  }

  /** Lists earlier versions, newest first. @throws {AppError} `not_found` */
  async listVersions(id: string): Promise<MemoryVersion[]> {
    const { body } = await this.#store.get(id);
    return body.versions.filter((version) => this.#isCurrent(version)).reverse();
  }

  /**
   * Restores an earlier version. The current state becomes a version.
   *
   * @throws {AppError} `not_found`, `revision_mismatch`
   */
  async restoreVersion(id: string, n: number, expected?: ExpectedVersion): Promise<Memory> {
    await this.#store.get(id);
    return toMemory(
      await this.#store.put(id, (before) => {
        const found = before?.body.versions.find((version) => version.n === n && this.#isCurrent(version));
        if (before === undefined || found === undefined) {
          throw new AppError("not_found", `Note "${id}" has no version ${n}`);
        }
        return { head: found.fields, body: this.#keepVersion(before, found.fields, "restore") };
      }, expected),
    );
  }

  #keepVersion(
    before: OpenedDocument<MemoryFields, MemoryBody> | undefined,
    fields: MemoryFields,
    cause: VersionCause,
  ): MemoryBody {
    if (before === undefined) return { versions: [], last: 0 };
    const { versions, last } = before.body;
    if (JSON.stringify(before.head) === JSON.stringify(fields)) return before.body;
    const replaced = { n: last + 1, createdAtMs: this.#now(), cause, fields: before.head };
    const all = [...versions, replaced].filter((version) => this.#isCurrent(version));
    return { versions: all.slice(-MAX_VERSIONS), last: last + 1 };
  }

  #isCurrent({ createdAtMs }: MemoryVersion): boolean {
    return !this.#isExpired(createdAtMs, VERSION_AGE_MS);
  }
}

function toMemory({ head, body: _, ...frame }: OpenedDocument<MemoryFields, MemoryBody>): Memory {
  return { ...frame, fields: head };
}

const KIND = "memory";
const TITLE_LENGTH = 100;

/** Opens the notes. */
function openNotes(
  options: Omit<DocumentStoreOptions<MemoryFields>, "kind" | "noun" | "getTitle" | "trash"> & {
    trash: DocumentStoreOptions<MemoryFields>["trash"] & {
      register(kind: string, handler: Pick<Store, "restore" | "purge">): void;
    };
    retention: Pick<RetentionClock, "isExpired">;
  },
): Memories {
  const getTitle = ({ text }: MemoryFields) => text.replace(/\s+/g, " ").slice(0, TITLE_LENGTH);
  const store: Store = new DocumentStore({ ...options, kind: KIND, noun: "memory", getTitle });
  options.trash.register(KIND, store);
  return new Memories({ store, now: options.now, isExpired: options.retention.isExpired });
}

/** How far a chat was read for proposals. */
export interface ReadPosition {
  /** The last message that was read. */
  messageId: string;
}

/** Dependencies of memory. */
interface MemoryDeps
  extends Pick<Parameters<typeof openNotes>[0], "db" | "events" | "log" | "now" | "retention" | "trash"> {
  sealer: Sealer;
}

/** The services of memory. */
export interface MemoryServices {
  memories: Memories;
  proposals: MemoryProposals;
  /** When reading started, and which notes were confirmed by chats. */
  use: SealedSetting<MemoryUse>;
  /** By chat ID. */
  readMarks: DocumentStore<ReadPosition, null>;
}

/** Opens notes and proposals. */
export function openMemories(deps: MemoryDeps): MemoryServices {
  const { db, events, log, trash, now, retention } = deps;
  const sealer = deps.sealer.forPurpose("memories");
  const options = { db, events, log, now, retention, sealer, trash };
  const memories = openNotes(options);
  const use = new SealedSetting<MemoryUse>({ db, sealer, events }, {
    key: "memory_use",
    label: "The use of memories",
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
      getTitle: ({ text }) => text,
    }),
  });
  const readMarks = new DocumentStore<ReadPosition, null>({
    ...options,
    kind: "memory_read",
    noun: "mark",
    getTitle: ({ messageId }) => messageId,
  });
  return { memories, proposals, readMarks, use };
}
