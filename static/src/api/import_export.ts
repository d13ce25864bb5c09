/** API calls for imports and backups. */
import type { DataReport, Importable, ImportSource, Job } from "./types.ts";
import { findDeviceToken, findStorage } from "../state/app/device.ts";
import { texts } from "../texts/texts.ts";
import { type ApiClient, ApiError } from "./client.ts";
import { parseErrorBody } from "./failures.ts";

/** The parameters of an import. */
export interface ImportRequest {
  kind: string;
  isDryRun: boolean;
  /** The file's name. */
  name?: string;
  /** Stores the file after the import, to read it again. */
  keepsSource?: boolean;
}

/** Receives the number of uploaded bytes. */
export type OnSent = (sentBytes: number) => void;

/** Returns what can be imported. @throws {ApiError} */
export async function getImportable(client: ApiClient): Promise<Importable> {
  return await (await client.send("GET", "/api/import")).json();
}

/** Imports the upload of a dry run. @throws {ApiError} `not_found` if the server no longer has it. */
export async function importUpload(client: ApiClient, wish: ImportRequest, uploadId: string): Promise<Job> {
  return await (await client.send("POST", `/api/import?${buildQuery(wish, { upload_id: uploadId })}`)).json();
}

/** Reads the stored file of an import again. @throws {ApiError} `not_found` if it has expired. */
export async function readSourceAgain(client: ApiClient, wish: ImportRequest, sourceId: string): Promise<Job> {
  return await (await client.send("POST", `/api/import?${buildQuery(wish, { source_id: sourceId })}`)).json();
}

/** Lists the stored files of imports, newest first. @throws {ApiError} */
export async function listImportSources(client: ApiClient): Promise<ImportSource[]> {
  return await (await client.send("GET", "/api/import/sources")).json();
}

/** Deletes the stored file of an import permanently. @throws {ApiError} */
export async function removeImportSource(client: ApiClient, id: string): Promise<void> {
  await (await client.send("DELETE", `/api/import/sources/${encodeURIComponent(id)}`)).body?.cancel();
}

/**
 * Uploads a file from disk and starts its import.
 *
 * Uses XMLHttpRequest, since `fetch` reports no upload progress.
 *
 * @throws {ApiError} An abort throws the signal's reason.
 */
export function uploadImport(file: File, wish: ImportRequest, onSent: OnSent, signal: AbortSignal): Promise<Job> {
  const { promise, resolve, reject } = Promise.withResolvers<Job>();
  const request = new XMLHttpRequest();
  request.open("POST", `/api/import?${buildQuery(wish)}`);
  request.setRequestHeader("content-type", "application/octet-stream");
  request.setRequestHeader("x-parlor-page", globalThis.location.origin);
  const token = findDeviceToken(findStorage(globalThis.window));
  if (token !== undefined) request.setRequestHeader("authorization", `Bearer ${token}`);
  request.upload.onprogress = ({ loaded }) => onSent(loaded);
  request.onload = () => {
    const job = request.status === 202 ? parseJob(request.responseText) : undefined;
    if (job) resolve(job);
    else reject(toApiError(request));
  };
  request.onerror = () => reject(new ApiError(0, { code: "no_answer", message: texts.errors.noAnswer }));
  request.onabort = () => reject(signal.reason);
  signal.addEventListener("abort", () => request.abort(), { once: true });
  if (signal.aborted) reject(signal.reason);
  else request.send(file);
  return promise;
}

/** Starts a backup into the configured folder. @throws {ApiError} `not_available` if there is none. */
export async function startBackup(client: ApiClient): Promise<Job> {
  return await (await client.send("POST", "/api/data/backups")).json();
}

/** Folder, schedule and number of backups. */
export type BackupChanges = Partial<Pick<DataReport, "backup_dir" | "backup_schedule" | "backup_keep">>;

/** Changes where backups go and how often. @throws {ApiError} `invalid_request` if the folder can't be used. */
export async function changeBackups(client: ApiClient, changes: BackupChanges): Promise<void> {
  await (await client.send("PATCH", "/api/data/backups", { body: changes })).body?.cancel();
}

/** Deletes a backup permanently. @throws {ApiError} */
export async function removeBackup(client: ApiClient, name: string): Promise<void> {
  await (await client.send("DELETE", backupPath(name))).body?.cancel();
}

/** Returns the URL of a backup. */
export function backupPath(name: string): string {
  return `/api/data/backups/${encodeURIComponent(name)}`;
}

function buildQuery(
  { kind, isDryRun, name, keepsSource }: ImportRequest,
  more: Record<string, string> = {},
): URLSearchParams {
  const cut = name === undefined ? undefined : [...name].slice(-100).join("");
  return new URLSearchParams({
    kind,
    ...(isDryRun && { dry_run: "true" }),
    ...(keepsSource && { keep_source: "true" }),
    ...(cut && { name: cut }),
    ...more,
  });
}

/** Returns undefined if something between page and server responded. */
function parseJob(text: string): Job | undefined {
  try {
    return JSON.parse(text) as Job;
  } catch {
    return undefined;
  }
}

function toApiError(request: XMLHttpRequest): ApiError {
  const request_id = request.getResponseHeader("x-request-id") ?? undefined;
  try {
    const body = parseErrorBody(JSON.parse(request.responseText));
    if (body) return new ApiError(request.status, { request_id, ...body });
  } catch {
    // Not JSON: something between page and server responded.
  }
  const message = texts.errors.status(request.status);
  return new ApiError(request.status, { code: "unexpected_answer", message, request_id });
}
