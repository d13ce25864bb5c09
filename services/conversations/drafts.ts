/** Saves the drafts of conversations: the text of a message that isn't sent yet. */
import { addReferences } from "../attachments/attachment_rows.ts";
import { AppError } from "../errors.ts";
import type { EventHub } from "../events/event_hub.ts";
import type { KeyedMutex } from "../async/locks.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import { assertExpected, type ExpectedVersion } from "../storage/preconditions.ts";
import type { ConversationInput } from "./conversation.ts";
import type { ConversationStore, Draft } from "./conversation_store.ts";

/** Dependencies of `Drafts`. */
export interface DraftsDeps {
  db: Database;
  store: ConversationStore;
  locks: KeyedMutex;
  events: EventHub;
}

/** A changed draft: its new version, and the statements that save it. */
export interface DraftChange {
  version: number;
  statements: Statement[];
}

/** Saves drafts. Each draft has its own version, and saving it doesn't change the conversation's revision. */
export class Drafts {
  readonly #deps: DraftsDeps;

  constructor(deps: DraftsDeps) {
    this.#deps = deps;
  }

  /** Saves the draft and returns its version. The conversation's revision and time stay the same. */
  save(id: string, text: string, expected?: ExpectedVersion): Promise<number> {
    const { store, locks, db } = this.#deps;
    return locks.run(id, async () => {
      store.getForWrite(id);
      const before = store.getDraft(id);
      assertExpected(`draft of conversation "${id}"`, expected, before.version);
      const { version, statements } = this.#createChange(id, text, before);
      await db.write(statements);
      this.publish(id, version);
      return version;
    });
  }

  /**
   * Returns the draft change of a saved conversation; `undefined` if it's unchanged, or if `draft_version` shows
   * that the stored one is newer.
   */
  createPutChange(id: string, input: ConversationInput, isNew: boolean): DraftChange | undefined {
    if (typeof input.draft !== "string") return undefined;
    const before = this.#deps.store.getDraft(id);
    const isStale = !isNew && input.draft_version !== undefined && input.draft_version !== before.version;
    return input.draft === before.text || isStale ? undefined : this.#createChange(id, input.draft, before);
  }

  /**
   * Returns the draft change of a patch; `undefined` if it's unchanged.
   *
   * @throws {AppError} `revision_mismatch` for a stale version.
   */
  createPatchChange(
    id: string,
    { draft: text, draft_version: version }: ConversationInput,
  ): DraftChange | undefined {
    if (typeof text !== "string") return undefined;
    const before = this.#deps.store.getDraft(id);
    if (version !== undefined && version !== before.version) {
      throw new AppError(
        "revision_mismatch",
        `The draft of conversation "${id}" is at version ${before.version}, not at ${version}`,
      );
    }
    return text === before.text ? undefined : this.#createChange(id, text, before);
  }

  #createChange(id: string, text: string, before: Draft): DraftChange {
    const version = before.version + 1;
    const saved = this.#deps.store.saveDraft(id, { text, version });
    return { version, statements: [saved, ...addReferences("conversation", id, text)] };
  }

  /** Publishes the new version of a draft. */
  publish(id: string, version: number): void {
    this.#deps.events.publish({ kind: "draft", id, revision: version });
  }
}
