/** The calls about earlier versions of a resource, and the warning on an export. */
import type { Version } from "./types.ts";
import type { ApiClient } from "./client.ts";

/** Lists the versions of the resource at a path, newest first. @throws {ApiError} */
export async function listVersions(client: ApiClient, path: string): Promise<Version[]> {
  return await (await client.send("GET", `${path}/versions`)).json();
}

/** Returns what an earlier version contains. @throws {ApiError} */
export async function readVersion(client: ApiClient, path: string, n: number): Promise<Record<string, unknown>> {
  return await (await client.send("GET", `${path}/versions/${n}`)).json();
}

/** Restores a version. What it replaces becomes a version. @throws {ApiError} */
export async function restoreVersion(client: ApiClient, path: string, n: number): Promise<void> {
  await (await client.send("POST", `${path}/versions/${n}/restore`, { body: {} })).body?.cancel();
}

/** Says whether an exported file is larger than the import takes. @throws {ApiError} */
export async function isExportTooLarge(client: ApiClient, path: string): Promise<boolean> {
  const answer = await client.send("HEAD", path);
  return answer.headers.get("x-parlor-warning") === "larger_than_import_limit";
}
