/** Brings one file of the hub whole and verified to its part file, through drops, silences and expired addresses. */
import { AppError, messageOf } from "../../errors.ts";
import type { Hub, HubFile } from "../hub/hub.ts";
import { createHubError, isTemporary, parseHubRetryAfter } from "../hub/hub_errors.ts";
import { delay } from "../../async/delay.ts";
import type { Transfer } from "./download_worker_client.ts";
import type { TransferEnd, TransferTarget } from "./download_protocol.ts";

/** How patient a download is. */
export interface DownloadLimits {
  /** Longest wait for the next byte before the connection is given up. */
  idleMs: number;
  /** First pause after a failed try; it doubles up to `maxPauseMs` until bytes come again. */
  pauseMs: number;
  maxPauseMs: number;
  /** Without a new byte for this long, whatever was tried, the download fails. */
  stallMs: number;
}

export const DEFAULT_LIMITS: DownloadLimits = {
  idleMs: 30_000,
  pauseMs: 1_000,
  maxPauseMs: 30_000,
  stallMs: 10 * 60_000,
};

/** What one file's download works with. */
export interface FileDownload {
  hub: Hub;
  transfer: Transfer;
  limits: DownloadLimits;
  repo: string;
  revision: string;
  file: HubFile;
  /** Where its bytes are gathered. */
  partPath: string;
  signal: AbortSignal;
  /** Told how many bytes were here before, while they are read again. */
  onFound(bytes: number): void;
  /** Told how many bytes are here as more come. */
  onReceived(bytes: number): void;
}

const REDIRECT_STATUS = new Set([301, 302, 303, 307, 308]);
const MAX_REDIRECTS = 5; // see docs/protocols/models.md#download
/** Stale parts and changed files are begun anew; a server that does that for ever is broken. */
const MAX_RESTARTS = 5;

/** Says what is expected of a file's bytes. */
export function toTransferTarget(file: HubFile, path: string): TransferTarget {
  return { path, sizeBytes: file.sizeBytes, hash: file.sha256 === undefined ? "git-sha1" : "sha256" };
}

/** Says whether a hash is the one that the hub names; without one there is nothing to check but the size. */
export function isExpectedHash(file: HubFile, hash: string): boolean {
  const expected = file.sha256 ?? file.gitSha1;
  return expected === undefined || hash === expected;
}

/**
 * Downloads a file; what the part file holds already is kept.
 *
 * @throws {AppError} `upstream_timeout` when nothing comes for too long; `upstream_error` when size or hash are not what the
 *   hub says (the part file is removed then) or the hub refuses; `not_found`; `storage_full`. The signal's reason.
 */
export async function downloadFile(work: FileDownload): Promise<void> {
  const first = await bring(work);
  if (isExpectedHash(work.file, first.hash)) return;
  const found = "its bytes do not have the hash that the hub names";
  if (!first.isResumed) await refuse(work, found);
  // Bytes of an earlier try may not have reached the disk whole (a power cut) or be those of another file by now.
  await removePart(work, found);
  const { hash } = await bring(work);
  if (!isExpectedHash(work.file, hash)) await refuse(work, found);
}

/** Brings all bytes to the part file. @returns Their hash, and whether some were there before. */
async function bring(work: FileDownload): Promise<{ hash: string; isResumed: boolean }> {
  const { transfer, file, partPath, limits, signal } = work;
  let newestAtMs = performance.now();
  let isOpen = false;
  let bytes = await transfer.open(toTransferTarget(file, partPath), (held) => {
    newestAtMs = performance.now();
    if (isOpen) work.onReceived(held);
    else work.onFound(held);
  });
  isOpen = true;
  let isResumed = bytes > 0;
  work.onFound(bytes);
  newestAtMs = performance.now();
  let pauseMs = limits.pauseMs;
  let restarts = 0;
  let restart = false;
  const known: KnownEtag = {};
  let isWhole = bytes === file.sizeBytes && bytes > 0;
  while (!isWhole) {
    const end = await tryOnce(work, { restart, known, bytes });
    const hasMore = end.isRestarted ? end.bytes > 0 : end.bytes > bytes;
    bytes = end.bytes;
    work.onReceived(bytes);
    if (end.isRestarted) isResumed = false;
    if (end.outcome === "wrong-size") await refuse(work, end.message);
    if (end.outcome === "unusable") throw broken(work, end.message);
    isWhole = end.outcome === "whole";
    if (isWhole) continue;
    restart = end.outcome === "stale";
    if ((restart || end.isRestarted) && ++restarts > MAX_RESTARTS) {
      throw broken(work, `it has to begin anew again and again; at last ${end.message}`);
    }
    if (hasMore) [pauseMs, newestAtMs] = [limits.pauseMs, performance.now()];
    const waitMs = Math.max(pauseMs, end.waitMs ?? 0);
    if (performance.now() - newestAtMs + waitMs > limits.stallMs) {
      const found = `nothing came for ${Math.round(limits.stallMs / 1000)} s; ${end.message}`;
      throw new AppError("upstream_timeout", `Can't download "${file.path}" of "${work.repo}": ${found}`);
    }
    await delay(waitMs, signal);
    pauseMs = Math.min(pauseMs * 2, limits.maxPauseMs);
  }
  const hash = await transfer.finish();
  work.onReceived(file.sizeBytes);
  return { hash, isResumed };
}

/** The validator of the part's bytes, and whose it is: another machine's is no other machine's business. */
interface KnownEtag {
  etag?: string;
  origin?: string;
}

/** How one try ended. */
interface TryEnd extends Pick<TransferEnd, "outcome" | "message" | "bytes" | "isRestarted"> {
  /** The least the other side wants us to wait. */
  waitMs?: number;
}

/** Asks the hub for the file's address, follows where it leads, and takes what comes. */
async function tryOnce(
  work: FileDownload,
  { restart, known, bytes }: { restart: boolean; known: KnownEtag; bytes: number },
): Promise<TryEnd> {
  const { hub, transfer, repo, revision, file } = work;
  const without = (outcome: TryEnd["outcome"], message: string, waitMs?: number): TryEnd => ({
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
      url = redirected(work, url, headers.location);
      continue;
    }
    const refusal = { status, header: (name: string) => headers[name] };
    const message = `"${url.host}" answered with status ${status}`;
    if (status === 416) return without("stale", `${message}: it has less of the file than is here`);
    if (isTemporary(status)) return without("cut", message, (parseHubRetryAfter(refusal) ?? 0) * 1000);
    // A signed address lives for an hour; the next try gets a new one.
    if (!hub.isOwnUrl(url) && (status === 401 || status === 403)) return without("cut", message);
    throw createHubError(
      refusal,
      `"${file.path}" of "${repo}"`,
      hub.getPageUrl(repo),
      "authorization" in authorization,
    );
  }
  throw broken(work, "it redirects too often");
}

function redirected(work: FileDownload, from: URL, location: string | undefined): URL {
  if (location === undefined || !URL.canParse(location, from)) throw broken(work, "it redirects to no address");
  const url = new URL(location, from);
  if (from.protocol === "https:" && url.protocol !== "https:") throw broken(work, "it redirects from https to http");
  url.hash = "";
  return url;
}

/** What cannot become right by more bytes goes. */
async function refuse(work: FileDownload, found: string): Promise<never> {
  await removePart(work, found);
  throw broken(work, found);
}

async function removePart(work: FileDownload, found: string): Promise<void> {
  try {
    await Deno.remove(work.partPath);
  } catch (error) {
    throw broken(work, `${found}; nor can its part file be removed: ${messageOf(error)}`);
  }
}

function broken({ file, repo }: FileDownload, found: string): AppError {
  return new AppError("upstream_error", `Can't download "${file.path}" of "${repo}": ${found}`);
}
