/** The calls about the room that the data takes, backups, and what is wrong with the installation. */
import type { DataReport, Finding, LicenseNotice } from "./types.ts";
import type { ApiClient } from "./client.ts";

/** Reads the licences of all that is inside. @throws {ApiError} */
export async function readLicenses(client: ApiClient): Promise<LicenseNotice[]> {
  return await (await client.send("GET", "/api/licences")).json();
}

/** Reads how the data stands. @throws {ApiError} */
export async function getDataReport(client: ApiClient): Promise<DataReport> {
  return await (await client.send("GET", "/api/data")).json();
}

/** Has the installation looked at. @throws {ApiError} */
export async function readFindings(client: ApiClient): Promise<Finding[]> {
  return await (await client.send("GET", "/api/findings")).json();
}
