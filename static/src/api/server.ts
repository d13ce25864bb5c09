/** API calls for the server itself: disk usage, licenses, new versions, the health check, and the tailnet node. */
import type { DataReport, Finding, LicenseNotice, Releases, StoredReport, TailnetStatus } from "./types.ts";
import type { ApiClient } from "./client.ts";

/** Returns the licenses of all bundled packages. @throws {ApiError} */
export async function readLicenses(client: ApiClient): Promise<LicenseNotice[]> {
  return await (await client.send("GET", "/api/licences")).json();
}

/** Returns what is known about newer versions. Asks no other server. @throws {ApiError} */
export async function getReleases(client: ApiClient): Promise<Releases> {
  return await (await client.send("GET", "/api/releases")).json();
}

/** Returns the changelog of the server's version, in Markdown. @throws {ApiError} */
export async function readChangelog(client: ApiClient): Promise<string> {
  return (await (await client.send("GET", "/api/changelog")).json()).text;
}

/** Returns disk usage and backups. @throws {ApiError} */
export async function getDataReport(client: ApiClient): Promise<DataReport> {
  return await (await client.send("GET", "/api/data")).json();
}

/** Returns what is known to be unreadable. @throws {ApiError} */
export async function getStoredReport(client: ApiClient): Promise<StoredReport> {
  return await (await client.send("GET", "/api/data/unreadable")).json();
}

/** Reads everything now. @throws {ApiError} */
export async function checkStored(client: ApiClient): Promise<void> {
  await client.send("POST", "/api/data/check", { body: {} });
}

/**
 * Restores something unreadable.
 *
 * @throws {ApiError} 409 if only an older state of a chat is left and `acceptsOlder` is false; 503 if nothing is.
 */
export async function restoreUnreadable(
  client: ApiClient,
  path: string,
  acceptsOlder: boolean,
): Promise<{ from: "version" | "backup"; made_at: string }> {
  const body = { path, accept_older: acceptsOlder };
  return await (await client.send("POST", "/api/data/unreadable/restore", { body })).json();
}

/** Runs the diagnostics. @throws {ApiError} */
export async function readFindings(client: ApiClient): Promise<Finding[]> {
  return await (await client.send("GET", "/api/findings")).json();
}

/** All calls throw `ApiError`. */
export interface TailnetApi {
  getTailnet(): Promise<TailnetStatus>;
  /** Turns the node on, renames it, or restarts it. */
  enableTailnet(hostname?: string): Promise<TailnetStatus>;
  disableTailnet(): Promise<TailnetStatus>;
}

/** Returns the calls, bound to a client. */
export function tailnetApi(client: ApiClient): TailnetApi {
  const call = async (method: string, verb: string, body?: unknown): Promise<TailnetStatus> =>
    await (await client.send(method, `/api/tailnet/${verb}`, { body })).json();
  return {
    getTailnet: () => call("GET", "status"),
    enableTailnet: (hostname) => call("POST", "enable", { hostname }),
    disableTailnet: () => call("POST", "disable", {}),
  };
}
