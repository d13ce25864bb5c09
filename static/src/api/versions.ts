/** API calls for earlier versions of resources and conversations, and the size warning of an export. */
import type { ApiClient } from "./client.ts";
import type { MessageVariant, Revision, RevisionDiff, Version } from "./types.ts";

/** Lists the versions of the resource at a path, newest first. @throws {ApiError} */
export async function listVersions(client: ApiClient, path: string): Promise<Version[]> {
  return await (await client.send("GET", `${path}/versions`)).json();
}

/** Returns the content of an earlier version. @throws {ApiError} */
export async function readVersion(client: ApiClient, path: string, n: number): Promise<Record<string, unknown>> {
  return await (await client.send("GET", `${path}/versions/${n}`)).json();
}

/** Restores a version. What it replaces becomes a version. @throws {ApiError} */
export async function restoreVersion(client: ApiClient, path: string, n: number): Promise<void> {
  await (await client.send("POST", `${path}/versions/${n}/restore`, { body: {} })).body?.cancel();
}

/** Returns whether an exported file exceeds the import limit. @throws {ApiError} */
export async function isExportTooLarge(client: ApiClient, path: string): Promise<boolean> {
  const answer = await client.send("HEAD", path);
  return answer.headers.get("x-parlor-warning") === "larger_than_import_limit";
}

const path = (id: string, rest = "") => `/api/conversations/${encodeURIComponent(id)}/revisions${rest}`;

/** Lists the versions of a message, oldest first. @throws {ApiError} */
export async function listVariants(client: ApiClient, id: string, messageId: string): Promise<MessageVariant[]> {
  const address = `/api/conversations/${encodeURIComponent(id)}/messages/${encodeURIComponent(messageId)}/variants`;
  return await (await client.send("GET", address)).json();
}

/** Lists the revisions of a conversation, newest first. @throws {ApiError} */
export async function listRevisions(client: ApiClient, id: string): Promise<Revision[]> {
  return await (await client.send("GET", path(id))).json();
}

/** Compares a revision with the current conversation. @throws {ApiError} */
export async function compareRevision(client: ApiClient, id: string, n: number): Promise<RevisionDiff> {
  return await (await client.send("GET", path(id, `/${n}`))).json();
}

/** Restores a revision. @throws {ApiError} `conflict` during a reply, or if one of its messages can't be restored. */
export async function restoreRevision(client: ApiClient, id: string, n: number): Promise<void> {
  const response = await client.send("POST", path(id, `/${n}/restore`), { body: {} });
  await response.body?.cancel();
}
