/** The calls about earlier versions of a conversation. */
import type { ApiClient } from "./client.ts";

/** A stored earlier version; `n` is the revision that a change replaced. */
export interface Revision {
  n: number;
  created_at: string;
  cause: "put" | "patch" | "message_patch" | "message_delete" | "restore";
  message_count: number;
}

/** One message that restoring would change. */
export interface MessageDifference {
  id: string;
  role: string;
  change: "changed" | "removed" | "added";
  /** Its text in the earlier version. */
  before?: string;
  /** Its text now. */
  after?: string;
}

/** How an earlier version differs from the conversation now. */
export interface RevisionDifference extends Revision {
  /** Names of the conversation's fields that differ. */
  fields: string[];
  messages: MessageDifference[];
  /** How many more messages differ. */
  more: number;
}

const path = (id: string, rest = "") => `/api/conversations/${encodeURIComponent(id)}/revisions${rest}`;

/** Lists earlier versions, newest first. @throws {ApiError} */
export async function listRevisions(client: ApiClient, id: string): Promise<Revision[]> {
  return await (await client.send("GET", path(id))).json();
}

/** Compares one with the conversation now. @throws {ApiError} */
export async function compareRevision(client: ApiClient, id: string, n: number): Promise<RevisionDifference> {
  return await (await client.send("GET", path(id, `/${n}`))).json();
}

/** Restores one. @throws {ApiError} `conflict` while a reply is written, or if a message it holds can't go back. */
export async function restoreRevision(client: ApiClient, id: string, n: number): Promise<void> {
  const response = await client.send("POST", path(id, `/${n}/restore`), { body: {} });
  await response.body?.cancel();
}
