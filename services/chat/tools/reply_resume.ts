/** What a reply that calls tools needs to go on after a restart: sealed, in a row of its own until the reply ends. */
import { deleteResumeRow, findResumeRow, saveResumeRow } from "../../conversations/reply_rows.ts";
import type { PurposeSealer } from "../../crypto/sealer.ts";
import type { Database, Statement } from "../../storage/database/database.ts";
import type { StatefulChatRequest } from "../chat_request.ts";

/** The state of a reply between two requests to the model. */
export interface ResumeState {
  request: StatefulChatRequest;
  /** Rounds of this run so far. */
  rounds: number;
  /** Milliseconds that it ran, without waiting. */
  runningMs: number;
  /** Most bytes of a result's text in this round. */
  maxResultBytes: number;
}

const decoder = new TextDecoder();

/** Reads and writes these rows. */
export class ReplyResumes {
  readonly #db: Database;
  readonly #sealer: PurposeSealer;

  constructor(db: Database, sealer: PurposeSealer) {
    this.#db = db;
    this.#sealer = sealer;
  }

  /** Statement that stores the state. */
  save(conversationId: string, mid: string, state: ResumeState): Statement {
    const version = (findResumeRow(this.#db, conversationId, mid)?.version ?? 0) + 1;
    const sealed = this.#sealer.sealNow(resumeAad(conversationId, mid, version), JSON.stringify(state));
    return saveResumeRow({ conversation_id: conversationId, mid, version, sealed });
  }

  /** Finds the state of a reply. Returns undefined for a reply without rounds. */
  find(conversationId: string, mid: string): ResumeState | undefined {
    const row = findResumeRow(this.#db, conversationId, mid);
    if (row === undefined) return undefined;
    return JSON.parse(decoder.decode(this.#sealer.openNow(resumeAad(conversationId, mid, row.version), row.sealed)));
  }

  /** Statement that forgets the state. */
  remove(conversationId: string, mid: string): Statement {
    return deleteResumeRow(conversationId, mid);
  }
}

function resumeAad(conversationId: string, mid: string, version: number) {
  return { table: "reply_resume", id: `${mid}/${conversationId}`, field: "state", version };
}
