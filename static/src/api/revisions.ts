/** The calls about earlier versions of a conversation. */
import type { Revision, RevisionDiff } from "./types.ts";
import type { ApiClient } from "./client.ts";

const path = (id: string, rest = "") => `/api/conversations/${encodeURIComponent(id)}/revisions${rest}`;

/** Lists earlier versions, newest first. @throws {ApiError} */
export async function listRevisions(client: ApiClient, id: string): Promise<Revision[]> {
  return await (await client.send("GET", path(id))).json();
}

/** Compares one with the conversation now. @throws {ApiError} */
export async function compareRevision(client: ApiClient, id: string, n: number): Promise<RevisionDiff> {
  return await (await client.send("GET", path(id, `/${n}`))).json();
}

/** Restores one. @throws {ApiError} `conflict` while a reply is written, or if a message it holds can't go back. */
export async function restoreRevision(client: ApiClient, id: string, n: number): Promise<void> {
  const response = await client.send("POST", path(id, `/${n}/restore`), { body: {} });
  await response.body?.cancel();
}
