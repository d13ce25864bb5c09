/**
 * What other programs shared with the installed app and waits for the owner's decision. The service worker stores it,
 * the share screen shows it.
 *
 * A page of any website can post to the share address, and the worker can't tell: the request has no Sec-Fetch-Site, no
 * referrer, and the origin `null`, as one from the system's share menu. So what arrives is only kept on the device, up to
 * limits, and nothing is sent before a click. A share that waits is never replaced by a later one.
 */
import { openChannel, withLock } from "./browser_parts.ts";

const CACHE = "parlor-shared";
/** Held while shares are added or deleted, because several can arrive at once. */
const LOCK = "parlor-shared";

/** Tells all tabs that the shares that wait have changed. */
const CHANNEL = "parlor-shared";

/** What waits on a device at most. */
const SHARE_LIMITS = { shares: 10, bytes: 100_000_000, ageMs: 7 * 24 * 60 * 60 * 1000 };

/** A file of a share, without its content. */
export interface SharedFile {
  name: string;
  type: string;
  sizeBytes: number;
}

/** Texts and files that were shared in one step. */
export interface Share {
  id: string;
  /** When it arrived, in milliseconds since 1970. */
  time: number;
  /** Empty if not shared, like the other texts. */
  title: string;
  text: string;
  url: string;
  files: SharedFile[];
}

/** Why a share wasn't kept. */
export type ShareProblem = "full" | "too_large" | "empty";

/** Stores a share, or returns why there's no place for it. */
export function keepShare(form: FormData): Promise<ShareProblem | undefined> {
  const [title, text, url] = ["title", "text", "url"].map((name) => {
    const value = form.get(name);
    return typeof value === "string" ? value.trim() : "";
  }) as [string, string, string];
  const parts = form.getAll("files").filter((part) => part instanceof File);
  // A form without a chosen file sends an empty one without a name.
  const contents = parts.filter(({ name, size }) => name !== "" || size > 0);
  return withLock(LOCK, async () => {
    const files = contents.map(({ name, type, size }) => ({ name, type, sizeBytes: size }));
    const share: Share = { id: crypto.randomUUID(), time: Date.now(), title, text, url, files };
    if (title + text + url === "" && files.length === 0) return "empty";
    const waiting = await listShares();
    if (waiting.length >= SHARE_LIMITS.shares) return "full";
    const sizeBytes = getSize(share);
    if (sizeBytes > SHARE_LIMITS.bytes) return "too_large";
    if (sizeBytes + waiting.reduce((sum, other) => sum + getSize(other), 0) > SHARE_LIMITS.bytes) return "full";
    const cache = await caches.open(CACHE);
    await deleteLeftovers(cache, waiting);
    for (const [n, file] of contents.entries()) await cache.put(getFilePath(share.id, n), new Response(file));
    // Last, so that a share is complete or not there.
    await cache.put(getPath(share.id), Response.json(share));
    announceChange();
    return undefined;
  });
}

/** Returns the shares that wait, newest first. */
export async function readShares(): Promise<Share[]> {
  try {
    return await caches.has(CACHE) ? await listShares() : [];
  } catch {
    return []; // There is no cache on plain HTTP off loopback, and browsers can refuse it.
  }
}

/** Returns the files of a share with their contents. */
export async function readSharedFiles(share: Share): Promise<File[]> {
  const cache = await caches.open(CACHE);
  return await Promise.all(share.files.map(async ({ name, type }, n) => {
    const response = await cache.match(getFilePath(share.id, n));
    if (response === undefined) throw new Error(`"${name}" isn't on this device anymore`);
    return new File([await response.blob()], name, { type });
  }));
}

/** Deletes a share. */
export function deleteShare(id: string): Promise<void> {
  return withLock(LOCK, async () => {
    const cache = await caches.open(CACHE);
    await cache.delete(getPath(id));
    const waiting = await listShares();
    if (waiting.length === 0) await caches.delete(CACHE);
    else await deleteLeftovers(cache, waiting);
    announceChange();
  });
}

const listeners = new Set<() => void>();

function announceChange(): void {
  for (const listener of listeners) listener();
  const channel = openChannel(CHANNEL);
  channel?.postMessage("changed");
  channel?.close();
}

/** Calls a function after each change of the shares that wait, by the service worker or any tab. @returns Ends that */
export function listenToShares(onChange: () => void): () => void {
  const channel = openChannel(CHANNEL);
  channel?.addEventListener("message", onChange);
  listeners.add(onChange);
  return () => {
    channel?.close();
    listeners.delete(onChange);
  };
}

async function listShares(): Promise<Share[]> {
  const cache = await caches.open(CACHE);
  const shares: Share[] = [];
  for (const { url } of await cache.keys()) {
    if (!/^\/shared\/[\w-]{36}$/.test(new URL(url).pathname)) continue;
    const share = await (await cache.match(url))?.json() as Share | undefined;
    if (share && Date.now() - share.time < SHARE_LIMITS.ageMs) shares.push(share);
  }
  return shares.sort((one, other) => other.time - one.time);
}

/** Deletes what belongs to no share that waits: expired ones, and those that an earlier worker or a stop left. */
async function deleteLeftovers(cache: Cache, waiting: readonly Share[]): Promise<void> {
  const ids = new Set(waiting.map(({ id }) => id));
  for (const request of await cache.keys()) {
    if (!ids.has(new URL(request.url).pathname.split("/")[2] ?? "")) await cache.delete(request);
  }
}

function getSize({ title, text, url, files }: Share): number {
  return new TextEncoder().encode(title + text + url).length + files.reduce((sum, file) => sum + file.sizeBytes, 0);
}

function getPath(id: string): string {
  return `/shared/${id}`;
}

function getFilePath(id: string, n: number): string {
  return `${getPath(id)}/${n}`;
}
