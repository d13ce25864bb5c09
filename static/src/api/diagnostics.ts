/** The calls about the room that the data takes, backups, and what is wrong with the installation. */
import type { ApiClient } from "./client.ts";

/** What takes room. */
export type SpaceUse = "chats" | "characters" | "attachments" | "models" | "voices" | "rest";

/** How the data stands. */
export interface DataReport {
  used: { what: SpaceUse; size_bytes: number }[];
  /** Null where no daily backups are made. */
  backup_dir: string | null;
  backup_keep: number;
  /** The newest first. */
  backups: { name: string; size_bytes: number; made_at: string }[];
}

/** One thing that was looked at. */
export interface Finding {
  level: "ok" | "note" | "problem";
  /** Which sentence it is, and what stands in its places. */
  code: string;
  params: Record<string, string | number>;
  about: string;
  remedy?: string;
}

/** The licence of a package. */
export interface LicenceNotice {
  name: string;
  version: string;
  /** As the package names it; empty for our own. */
  licence: string;
  /** Empty where it brings none. */
  text: string;
}

/** Reads the licences of all that is inside. @throws {ApiError} */
export async function readLicences(client: ApiClient): Promise<LicenceNotice[]> {
  return await (await client.send("GET", "/api/licences")).json();
}

/** Reads how the data stands. @throws {ApiError} */
export async function readData(client: ApiClient): Promise<DataReport> {
  return await (await client.send("GET", "/api/data")).json();
}

/** Has the installation looked at. @throws {ApiError} */
export async function readFindings(client: ApiClient): Promise<Finding[]> {
  return await (await client.send("GET", "/api/findings")).json();
}
