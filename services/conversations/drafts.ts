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

/** Saves drafts. A draft has a version of its own; it doesn't change the conversation's revision. */
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
      const draft = { text, version: before.version + 1 };
      await db.write(this.#createStatements(id, draft));
      this.publish(id);
      return draft.version;
    });
  }

  /**
   * Returns the statements that save the draft of a whole conversation. It replaces the stored draft, unless
   * `draft_version` shows that the stored one is newer.
   */
  createPutStatements(id: string, input: ConversationInput, isNew: boolean): Statement[] {
    if (typeof input.draft !== "string") return [];
    const before = this.#deps.store.getDraft(id);
    const isStale = !isNew && input.draft_version !== undefined && input.draft_version !== before.version;
    if (input.draft === before.text || isStale) return [];
    return this.#createStatements(id, { text: input.draft, version: before.version + 1 });
  }

  /**
   * Returns the statements that save the draft of a patch; none if it's unchanged.
   *
   * @throws {AppError} `revision_mismatch` for a stale version.
   */
  createPatchStatements(id: string, { draft: text, draft_version: version }: ConversationInput): Statement[] {
    if (typeof text !== "string") return [];
    const before = this.#deps.store.getDraft(id);
    if (version !== undefined && version !== before.version) {
      throw new AppError(
        "revision_mismatch",
        `The draft of conversation "${id}" is at version ${before.version}, not at ${version}`,
      );
    }
    return text === before.text ? [] : this.#createStatements(id, { text, version: before.version + 1 });
  }

  #createStatements(id: string, draft: Draft): Statement[] {
    return [this.#deps.store.saveDraft(id, draft), ...addReferences("conversation", id, draft.text)];
  }

  /** Publishes the version of the stored draft. */
  publish(id: string): void {
    this.#deps.events.publish({ kind: "draft", id, revision: this.#deps.store.getDraft(id).version });
  }
}
