/** Stores tool calls and the permissions of chats, encrypted. */
import type { PurposeSealer } from "../crypto/sealer.ts";
import type { Database, Statement } from "../storage/database/database.ts";
import type { Tool, ToolPermission } from "./tool_registry.ts";

/** State of a call. `unknown`: the server was killed while it was running. */
export type ToolCallState = "pending" | "running" | "done" | "failed" | "denied" | "unknown";

/** Result of a call that the owner didn't decide about, for the model. */
export const UNDECIDED = "This call wasn't made: the reply ended before the user decided.";
/** Result of a call that ran when its reply ended, for the model. */
export const RESULT_UNKNOWN =
  "The result of this call isn't known: the reply ended while the call ran. It may have taken effect. Don't repeat it " +
  "without asking the user.";

/** A tool call. */
export interface ToolCallRecord {
  /** Unique in its conversation. */
  id: string;
  conversationId: string;
  /** The message with the call. */
  messageId: string;
  /** The name that the model used. */
  name: string;
  /** Arguments as a JSON object in text form, as they were or will be sent. */
  arguments: string;
  /** The model's arguments, if the owner changed them. */
  proposedArguments?: string;
  state: ToolCallState;
  /** The result as the model sees it. */
  result?: string;
  /** The complete text of the result, if the model sees less. */
  fullResult?: string;
  /** Absent if no tool has this name. */
  tool?: Omit<Tool, "description" | "inputSchema" | "permission">;
  decision?: "allow" | "deny";
  /**
   * Who decided: a session or token by its label, `"chat"` or `"always"` for a stored permission, `"system"` if Parlor
   * ended it.
   */
  decidedBy?: string;
  decidedAtMs?: number;
  startedAtMs?: number;
  endedAtMs?: number;
}

/** Number of calls per page of the list. */
const PAGE_CALLS = 50;

interface Row {
  id: number;
  conversation_id: string;
  call_id: string;
  version: number;
  sealed: Uint8Array;
}

/** Permissions in one chat, by tool. */
type ChatPermissions = Record<string, { fingerprint: string; permission: ToolPermission }>;

const decoder = new TextDecoder();

/** Stores calls. */
export class ToolCallStore {
  readonly #db: Database;
  readonly #sealer: PurposeSealer;

  constructor(db: Database, sealer: PurposeSealer) {
    this.#db = db;
    this.#sealer = sealer;
  }

  /** Returns the statement that saves a call. */
  save(record: ToolCallRecord): Statement {
    const { conversationId, id, messageId } = record;
    const version = (this.#findRow(conversationId, id)?.version ?? 0) + 1;
    const sealed = this.#sealer.sealNow(callAad(conversationId, id, version), JSON.stringify(record));
    return {
      sql: `INSERT INTO tool_call (conversation_id, message_id, call_id, version, sealed) VALUES (?1, ?2, ?3, ?4, ?5)
            ON CONFLICT (conversation_id, call_id) DO UPDATE SET version = ?4, sealed = ?5`,
      params: [conversationId, messageId, id, version, sealed],
    };
  }

  /** Finds a call. */
  find(conversationId: string, callId: string): ToolCallRecord | undefined {
    const row = this.#findRow(conversationId, callId);
    return row && this.#open(row);
  }

  /** Returns whether a call has this ID. */
  has(conversationId: string, callId: string): boolean {
    return this.#findRow(conversationId, callId) !== undefined;
  }

  /** Lists the conversations that have a call with an ID. IDs are only unique within a conversation. */
  listConversations(callId: string): string[] {
    return this.#db.all<{ conversation_id: string }>(
      "SELECT conversation_id FROM tool_call WHERE call_id = ? ORDER BY id DESC",
      callId,
    ).map((row) => row.conversation_id);
  }

  /** Finds the calls of a message, in their order. */
  listByMessage(conversationId: string, messageId: string): ToolCallRecord[] {
    return this.#db.all<Row>(
      `SELECT id, conversation_id, call_id, version, sealed FROM tool_call
       WHERE conversation_id = ? AND message_id = ? ORDER BY id`,
      conversationId,
      messageId,
    ).map((row) => this.#open(row));
  }

  /** Lists all calls, newest first. @param before Cursor of the previous page. */
  list(before: number = Number.MAX_SAFE_INTEGER): { items: ToolCallRecord[]; nextCursor?: number } {
    const rows = this.#db.all<Row>(
      "SELECT id, conversation_id, call_id, version, sealed FROM tool_call WHERE id < ? ORDER BY id DESC LIMIT ?",
      before,
      PAGE_CALLS + 1,
    );
    const page = rows.slice(0, PAGE_CALLS);
    return {
      items: page.map((row) => this.#open(row)),
      nextCursor: rows.length > PAGE_CALLS ? page.at(-1)!.id : undefined,
    };
  }

  /** Returns the permission of a tool in a chat; `undefined` if there is none for the tool's current definition. */
  findPermission(conversationId: string, tool: ToolKey): ToolPermission | undefined {
    const found = this.#listPermissions(conversationId)[createKey(tool)];
    return found?.fingerprint === tool.fingerprint ? found.permission : undefined;
  }

  /** Returns the statement that saves the permission of a tool in a chat. */
  savePermission(conversationId: string, tool: ToolKey, permission: ToolPermission): Statement {
    const permissions: ChatPermissions = {
      ...this.#listPermissions(conversationId),
      [createKey(tool)]: { fingerprint: tool.fingerprint, permission },
    };
    const version = (this.#findPermissionRow(conversationId)?.version ?? 0) + 1;
    const sealed = this.#sealer.sealNow(createPermissionAad(conversationId, version), JSON.stringify(permissions));
    return {
      sql: `INSERT INTO tool_permission (conversation_id, version, sealed) VALUES (?1, ?2, ?3)
            ON CONFLICT (conversation_id) DO UPDATE SET version = ?2, sealed = ?3`,
      params: [conversationId, version, sealed],
    };
  }

  #findRow(conversationId: string, callId: string): Row | undefined {
    return this.#db.get<Row>(
      "SELECT id, conversation_id, call_id, version, sealed FROM tool_call WHERE conversation_id = ? AND call_id = ?",
      conversationId,
      callId,
    );
  }

  #open({ conversation_id: conversationId, call_id: callId, version, sealed }: Row): ToolCallRecord {
    return JSON.parse(decoder.decode(this.#sealer.openNow(callAad(conversationId, callId, version), sealed)));
  }

  #findPermissionRow(conversationId: string) {
    return this.#db.get<{ version: number; sealed: Uint8Array }>(
      "SELECT version, sealed FROM tool_permission WHERE conversation_id = ?",
      conversationId,
    );
  }

  #listPermissions(conversationId: string): ChatPermissions {
    const row = this.#findPermissionRow(conversationId);
    if (row === undefined) return {};
    return JSON.parse(
      decoder.decode(this.#sealer.openNow(createPermissionAad(conversationId, row.version), row.sealed)),
    );
  }
}

type ToolKey = Pick<Tool, "serverId" | "name" | "fingerprint">;

function createKey({ serverId, name }: ToolKey): string {
  return `${serverId}/${name}`;
}

function callAad(conversationId: string, callId: string, version: number) {
  return { table: "tool_call", id: `${callId}/${conversationId}`, field: "record", version };
}

function createPermissionAad(conversationId: string, version: number) {
  return { table: "tool_permission", id: conversationId, field: "permissions", version };
}
