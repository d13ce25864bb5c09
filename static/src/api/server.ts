/** API calls for the server itself: disk usage, licenses, the health check, and the tailnet node. */
import type { DataReport, Finding, LicenseNotice, TailnetStatus } from "./types.ts";
import type { ApiClient } from "./client.ts";

/** Returns the licenses of all bundled packages. @throws {ApiError} */
export async function readLicenses(client: ApiClient): Promise<LicenseNotice[]> {
  return await (await client.send("GET", "/api/licences")).json();
}

/** Returns disk usage and backups. @throws {ApiError} */
export async function getDataReport(client: ApiClient): Promise<DataReport> {
  return await (await client.send("GET", "/api/data")).json();
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
