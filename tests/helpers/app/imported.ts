/** Imports over HTTP that wait for the end of the job. */
import { type Zippable, zipSync } from "fflate";
import { IMPORTED_ITEM_KINDS } from "../../../services/import_export/import_item.ts";
import type { ImportReport } from "../../../services/import_export/import_report.ts";
import type { TestApp } from "./test_app.ts";

/** Imports bytes or an existing upload, and returns the ended job. */
export async function importJob(app: TestApp, query: string, body?: Uint8Array<ArrayBuffer>) {
  const answer = await app.post(`/api/import?${query}`, body, {
    headers: { "content-type": "application/octet-stream" },
  });
  const job = await answer.json();
  if (answer.status !== 202) throw new Error(`${answer.status}: ${JSON.stringify(job)}`);
  return await app.services.jobs.ended(job.id);
}

/** Like `importJob`, but returns the report. @throws {Error} if the job failed. */
export async function importReport(
  app: TestApp,
  query: string,
  body?: Uint8Array<ArrayBuffer>,
): Promise<ImportReport> {
  const { error, detail } = await importJob(app, query, body);
  if (error !== undefined) throw new Error(error.message);
  return detail as ImportReport;
}

/** The counts of an empty import. */
export const NOTHING_ADDED = Object.fromEntries(IMPORTED_ITEM_KINDS.map((thing) => [thing, 0]));

/** Returns the number of added items of each kind. */
export function added({ counts }: ImportReport): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).map(([thing, { added }]) => [thing, added]));
}

/** Fetches a URL and returns its JSON. */
// deno-lint-ignore no-explicit-any -- answers of many shapes
export async function got(app: TestApp, path: string): Promise<any> {
  const answer = await app.get(path);
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${text}`);
  return JSON.parse(text);
}

/** Returns a ZIP archive of the files. */
export function zipped(files: Zippable): Uint8Array<ArrayBuffer> {
  return zipSync(files) as Uint8Array<ArrayBuffer>;
}

/** Returns the bytes of a JSON file. */
export function jsonFile(value: unknown): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}
