/**
 * Downloads and verifies one file of the hub, with retries after lost connections, timeouts and expired addresses, and
 * the messages between a download and its Worker.
 */
import { AppError, type ErrorCode, getErrorMessage } from "../../errors.ts";
import type { OwnListenersCopy } from "../../http/own_listeners.ts";
import { createHubError, type Hub, type HubFile, isTemporary, parseHubRetryAfter } from "../hub.ts";
import { delay } from "../../async/delay.ts";
import type { Transfer } from "./download_job.ts";

/** Timeouts and pauses of a download. */
export interface DownloadLimits {
  /** Maximum time between two bytes of a connection. */
  idleMs: number;
  /** Pause after a failed attempt. It doubles up to `maxRetryDelayMs` until bytes arrive. */
  retryDelayMs: number;
  maxRetryDelayMs: number;
  /** A download fails after this time without new bytes. */
  stallMs: number;
}

export const DEFAULT_LIMITS: DownloadLimits = {
  idleMs: 30_000,
  retryDelayMs: 1_000,
  maxRetryDelayMs: 30_000,
  stallMs: 10 * 60_000,
};

/** A file to download, with dependencies and callbacks. */
export interface FileDownload {
  hub: Hub;
  transfer: Transfer;
  limits: DownloadLimits;
  repo: string;
  revision: string;
  file: HubFile;
  partPath: string;
  signal: AbortSignal;
  /** Called with the number of bytes from an earlier attempt, while they're being hashed. */
  onFound(bytes: number): void;
  /** Called with the number of received bytes. */
  onReceived(bytes: number): void;
}

const REDIRECT_STATUS = new Set([301, 302, 303, 307, 308]);
const MAX_REDIRECTS = 5; // See docs/protocols/models.md#download.
/** How often the download of a changed file starts again. */
const MAX_RESTARTS = 5;

/** Returns path, size and hash kind of a file. */
export function toTransferTarget(file: HubFile, path: string): TransferTarget {
  return { path, sizeBytes: file.sizeBytes, hash: file.sha256 === undefined ? "git-sha1" : "sha256" };
}

/** Returns whether a hash matches the hub's list. True if the list has no hash. */
export function isExpectedHash(file: HubFile, hash: string): boolean {
  const expected = file.sha256 ?? file.gitSha1;
  return expected === undefined || hash === expected;
}

/**
 * Downloads a file, resuming at the end of its part file.
 *
 * @throws {AppError} `upstream_timeout` after too long without a byte; `upstream_error` if size or hash differ from the
 *   hub's list (the partial file is deleted then) or the hub rejects the request; `not_found`; `storage_full`.
 * @throws The reason of the signal.
 */
export async function downloadFile(work: FileDownload): Promise<void> {
  const first = await completePart(work);
  if (isExpectedHash(work.file, first.hash)) return;
  const found = "its hash differs from the one in the hub's list";
  if (!first.isResumed) await rejectPart(work, found);
  // Bytes of an earlier attempt may be incomplete after a power failure, or belong to an older file.
  await removePart(work, found);
  const { hash } = await completePart(work);
  if (!isExpectedHash(work.file, hash)) await rejectPart(work, found);
}

/** Completes the part file. @returns Its hash, and whether a part of it is from an earlier attempt. */
async function completePart(work: FileDownload): Promise<{ hash: string; isResumed: boolean }> {
  const { transfer, file, partPath, limits, signal } = work;
  let lastByteAtMs = performance.now();
  let isOpen = false;
  let bytes = await transfer.open(toTransferTarget(file, partPath), (storedBytes) => {
    lastByteAtMs = performance.now();
    if (isOpen) work.onReceived(storedBytes);
    else work.onFound(storedBytes);
  });
  isOpen = true;
  let isResumed = bytes > 0;
  work.onFound(bytes);
  lastByteAtMs = performance.now();
  let retryDelayMs = limits.retryDelayMs;
  let restarts = 0;
  let restart = false;
  const known: KnownEtag = {};
  let isWhole = bytes === file.sizeBytes && bytes > 0;
  while (!isWhole) {
    const end = await tryTransfer(work, { restart, known, bytes });
    const hasMore = end.isRestarted ? end.bytes > 0 : end.bytes > bytes;
    bytes = end.bytes;
    work.onReceived(bytes);
    if (end.isRestarted) isResumed = false;
    if (end.outcome === "wrong-size") await rejectPart(work, end.message);
    if (end.outcome === "unusable") throw createError(work, end.message);
    isWhole = end.outcome === "whole";
    if (isWhole) continue;
    restart = end.outcome === "stale";
    if ((restart || end.isRestarted) && ++restarts > MAX_RESTARTS) {
      throw createError(work, `it had to start again too often. The last reason: ${end.message}`);
    }
    if (hasMore) [retryDelayMs, lastByteAtMs] = [limits.retryDelayMs, performance.now()];
    const waitMs = Math.max(retryDelayMs, end.waitMs ?? 0);
    if (performance.now() - lastByteAtMs + waitMs > limits.stallMs) {
      const found = `no data arrived for ${Math.round(limits.stallMs / 1000)} s. The last reason: ${end.message}`;
      throw new AppError("upstream_timeout", `Can't download "${file.path}" of "${work.repo}": ${found}`);
    }
    await delay(waitMs, signal);
    retryDelayMs = Math.min(retryDelayMs * 2, limits.maxRetryDelayMs);
  }
  const hash = await transfer.finish();
  work.onReceived(file.sizeBytes);
  return { hash, isResumed };
}

/** ETag of the partial file, and the origin that sent it. The ETag is only sent back to that origin. */
interface KnownEtag {
  etag?: string;
  origin?: string;
}

/** The end of one attempt. */
interface TryEnd extends Pick<TransferEnd, "outcome" | "message" | "bytes" | "isRestarted"> {
  /** Delay that the server requests. */
  waitMs?: number;
}

/** Requests the file from the hub, follows redirects and receives the body. */
async function tryTransfer(
  work: FileDownload,
  { restart, known, bytes }: { restart: boolean; known: KnownEtag; bytes: number },
): Promise<TryEnd> {
  const { hub, transfer, repo, revision, file } = work;
  const endWithoutBytes = (outcome: TryEnd["outcome"], message: string, waitMs?: number): TryEnd => ({
    outcome,
    message,
    waitMs,
    bytes,
    isRestarted: false,
  });
  let url = hub.getFileUrl(repo, revision, file.path);
  for (let hops = 0; hops <= MAX_REDIRECTS; hops++) {
    const authorization = await hub.getAuthorization(url);
    const report = await transfer.get({
      url: url.href,
      headers: { "user-agent": "Parlor", ...authorization },
      etag: known.origin === url.origin ? known.etag : undefined,
      restart,
    });
    if (report.kind === "ended") {
      if (report.etag !== undefined || report.isRestarted) [known.etag, known.origin] = [report.etag, url.origin];
      return report;
    }
    const { status, headers } = report;
    if (REDIRECT_STATUS.has(status)) {
      url = resolveRedirect(work, url, headers.location);
      continue;
    }
    const refusal = { status, getHeader: (name: string) => headers[name] };
    const message = `"${url.host}" responded with status ${status}`;
    if (status === 416) return endWithoutBytes("stale", `${message}: it's smaller than the partial file`);
    if (isTemporary(status)) return endWithoutBytes("cut", message, (parseHubRetryAfter(refusal) ?? 0) * 1000);
    // A signed address expires after an hour; the next attempt gets a new one.
    if (!hub.isOwnUrl(url) && (status === 401 || status === 403)) return endWithoutBytes("cut", message);
    throw createHubError(
      refusal,
      `"${file.path}" of "${repo}"`,
      hub.getPageUrl(repo),
      "authorization" in authorization,
    );
  }
  throw createError(work, "too many redirects");
}

function resolveRedirect(work: FileDownload, from: URL, location: string | undefined): URL {
  if (location === undefined || !URL.canParse(location, from)) {
    throw createError(work, "a redirect has no valid address");
  }
  const url = new URL(location, from);
  if (from.protocol === "https:" && url.protocol !== "https:") {
    throw createError(work, "a redirect leads from https to http");
  }
  url.hash = "";
  return url;
}

/** Deletes a partial file that can't be completed, and throws. */
async function rejectPart(work: FileDownload, found: string): Promise<never> {
  await removePart(work, found);
  throw createError(work, found);
}

async function removePart(work: FileDownload, found: string): Promise<void> {
  try {
    await Deno.remove(work.partPath);
  } catch (error) {
    throw createError(work, `${found}. Its partial file can't be deleted, either: ${getErrorMessage(error)}`);
  }
}

function createError({ file, repo }: FileDownload, found: string): AppError {
  return new AppError("upstream_error", `Can't download "${file.path}" of "${repo}": ${found}`);
}

/** Hash by which a file is verified. */
export type HashKind = "sha256" | "git-sha1";

/** Addresses that the Worker may use, like the options of the guard. */
export interface TransferPolicy {
  allow: string[];
  exactOrigins: string[];
  /** What Parlor listens on. */
  ownListeners?: OwnListenersCopy;
  /** PEM certificates to trust in addition to those of the runtime. */
  caCerts?: string[];
}

/** A file to write or check. */
export interface TransferTarget {
  /** Path of the partial file. */
  path: string;
  sizeBytes: number;
  hash: HashKind;
}

/** A request to the Worker. It responds to each with any number of `progress` reports and one other. */
export type TransferOrder =
  | { kind: "open"; target: TransferTarget }
  /** Resumes at the end of the partial file; `restart` downloads everything again. */
  | { kind: "get"; url: string; headers: Record<string, string>; etag?: string; restart: boolean }
  | { kind: "finish" }
  /** Hashes an existing file. */
  | { kind: "hash"; target: TransferTarget }
  /** Aborts the current request, which then fails. Has no report. */
  | { kind: "abort" };

/** First message to a Worker. */
export interface TransferSettings {
  policy: TransferPolicy;
  /** Maximum time to wait for the next byte. */
  idleMs: number;
}

/** How a `get` ended. */
export interface TransferEnd {
  kind: "ended";
  /** Size of the partial file. */
  bytes: number;
  /** True if the earlier content of the partial file was discarded. */
  isRestarted: boolean;
  /** The strong ETag of the response. */
  etag?: string;
  /**
   * `whole`: complete. `cut`: the connection ended or timed out. `stale`: the file on the server has changed.
   * `wrong-size`: longer or shorter than in the hub's list. `unusable`: a retry would have the same result.
   */
  outcome: "whole" | "cut" | "stale" | "wrong-size" | "unusable";
  message: string;
}

/** A message from the Worker. */
export type TransferReport =
  | { kind: "opened"; bytes: number }
  | { kind: "progress"; bytes: number }
  | TransferEnd
  /** The server responded with a status other than 200 and 206. */
  | { kind: "answer"; status: number; headers: Record<string, string> }
  | { kind: "hashed"; hash: string; bytes: number }
  | { kind: "failed"; code: ErrorCode; message: string };
