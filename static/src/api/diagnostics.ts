/** The calls about disk usage, backups, licenses and diagnostics. */
import type { DataReport, Finding, LicenseNotice } from "./types.ts";
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
