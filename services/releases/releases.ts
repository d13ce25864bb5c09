/**
 * Asks once a day whether there is a newer version, if the owner turned that on. Nothing is downloaded or
 * installed.
 */
import { AppError, getErrorMessage } from "../errors.ts";
import type { Guard } from "../http/guard/guarded_fetch.ts";
import { openHttpClient } from "../http/http_client.ts";
import type { OwnListeners } from "../http/own_listeners.ts";
import { readText } from "../http/read_body.ts";
import { asObject } from "../json/type_guards.ts";
import type { Log } from "../log.ts";
import { SealedSetting, type SealedSettingDeps } from "../storage/documents/sealed_document.ts";

/** The newest release, as its server describes it. */
interface Release {
  /** `"1.2.3"`, without a "v". */
  version: string;
  /** Page of the release, https only. */
  url?: string;
  /** What changed, in Markdown. */
  notes?: string;
}

/** Where releases are announced, and how to get there. */
interface ReleaseSource {
  url: string;
  /** HTTP proxy of the owner; `null` for none. */
  proxy: string | null;
}

/** How to send the request. */
export interface ReleaseTransport {
  openGuard(): Promise<Pick<Guard, "fetch">>;
  ownListeners?: OwnListeners;
  /** Until the end of the response. Default: 15 s. */
  timeoutMs?: number;
}

const TIMEOUT_MS = 15_000;
/** Notes of a release have some kilobytes. */
const MAX_RESPONSE_BYTES = 256 * 1024;
const MAX_NOTES_CHARS = 64 * 1024;
const MAX_URL_CHARS = 2_000;
/** GitHub refuses requests without one. It says nothing about this installation. */
const HEADERS = { accept: "application/json", "user-agent": "Parlor" };

/**
 * Requests the newest release.
 *
 * @throws {AppError} `upstream_error`, `upstream_timeout`, `address_not_allowed` with a message for the owner
 */
export async function fetchRelease(
  { url, proxy }: ReleaseSource,
  { openGuard, ownListeners, timeoutMs = TIMEOUT_MS }: ReleaseTransport,
  signal?: AbortSignal,
): Promise<Release> {
  if (proxy === null) {
    const guard = await openGuard();
    return await readRelease(
      await guard.fetch(url, { headers: HEADERS, maxBytes: MAX_RESPONSE_BYTES, timeoutMs, signal }),
      url,
    );
  }
  // The guard judges addresses that it resolves itself, but behind a proxy only the proxy can resolve names.
  const client = openHttpClient({ ownListeners, keepsConnections: false, proxyUrl: proxy });
  try {
    const timeouts = { connectMs: timeoutMs, firstByteMs: timeoutMs, idleMs: timeoutMs };
    const limit = AbortSignal.timeout(timeoutMs);
    const ended = signal === undefined ? limit : AbortSignal.any([signal, limit]);
    const target = { baseUrl: new URL(url).origin, timeouts };
    return await readRelease(await client.fetch("the release server", target, { url, headers: HEADERS }, ended), url);
  } catch (thrown) {
    if (thrown instanceof AppError || signal?.aborted) throw thrown;
    throw createError(url, `no complete response within ${timeoutMs / 1000} s`, thrown, "upstream_timeout");
  } finally {
    client.close();
  }
}

async function readRelease(response: Response, url: string): Promise<Release> {
  if (!response.ok) {
    await response.body?.cancel();
    throw createError(url, `status ${response.status}`);
  }
  // One byte more than allowed, so that a cut response isn't taken for a whole one.
  const text = await readText(response, MAX_RESPONSE_BYTES + 1);
  if (text.length > MAX_RESPONSE_BYTES) throw createError(url, "the response is too large");
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw createError(url, "the response isn't JSON", cause);
  }
  const release = parseRelease(json);
  if (release === undefined) throw createError(url, "the response has no version");
  return release;
}

function createError(
  url: string,
  why: string,
  cause?: unknown,
  code: "upstream_error" | "upstream_timeout" = "upstream_error",
): AppError {
  return new AppError(code, `Can't look for new versions at "${new URL(url).host}": ${why}`, { cause });
}

/**
 * Reads `{version, url?, notes?}`, or a release as GitHub, Forgejo and Gitea describe it:
 * `{tag_name, html_url?, body?, draft?, prerelease?}`.
 *
 * @returns `undefined` if it has no version.
 * @see https://docs.github.com/en/rest/releases/releases#get-the-latest-release
 */
export function parseRelease(json: unknown): Release | undefined {
  const { version, tag_name, html_url, url, body, notes, draft, prerelease } = asObject(json);
  const [, found] = /^v?(.{1,100})$/s.exec(typeof version === "string" ? version : asString(tag_name)) ?? [];
  if (found === undefined || parseVersion(found) === undefined || draft === true || prerelease === true) {
    return undefined;
  }
  const page = asString(html_url) || asString(url);
  const isPage = page.length <= MAX_URL_CHARS && URL.canParse(page) && new URL(page).protocol === "https:";
  const text = (asString(body) || asString(notes)).replaceAll("\r\n", "\n").slice(0, MAX_NOTES_CHARS).trim();
  return {
    version: found,
    ...(isPage && { url: new URL(page).href }),
    ...(text !== "" && { notes: text }),
  };
}

function asString(value: unknown): string {
  return typeof value === "string" ? value : "";
}

interface ParsedVersion {
  numbers: number[];
  /** Empty for a release that is none before another. */
  prerelease: string[];
}

/** @see https://semver.org/#semantic-versioning-specification-semver */
const VERSION = /^(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?$/;

function parseVersion(text: string): ParsedVersion | undefined {
  const [, major, minor, patch, prerelease] = VERSION.exec(text) ?? [];
  if (major === undefined) return undefined;
  return { numbers: [major, minor, patch].map(Number), prerelease: prerelease?.split(".") ?? [] };
}

/**
 * Returns whether a release should be announced: it's newer, and no prerelease, unless this version is one itself.
 */
export function isNewer(version: string, own: string): boolean {
  const [found, installed] = [parseVersion(version), parseVersion(own)];
  if (found === undefined || installed === undefined) return false;
  if (found.prerelease.length > 0 && installed.prerelease.length === 0) return false;
  for (const [i, number] of found.numbers.entries()) {
    if (number !== installed.numbers[i]) return number > installed.numbers[i]!;
  }
  return comparePrereleases(found.prerelease, installed.prerelease) > 0;
}

/** @see https://semver.org/#spec-item-11 */
function comparePrereleases(one: readonly string[], other: readonly string[]): number {
  if (one.length === 0 || other.length === 0) return other.length - one.length;
  for (let i = 0; i < Math.max(one.length, other.length); i++) {
    const [a, b] = [one[i], other[i]];
    if (a === b) continue;
    if (a === undefined || b === undefined) return a === undefined ? -1 : 1;
    const [isNumberA, isNumberB] = [/^\d+$/.test(a), /^\d+$/.test(b)];
    if (isNumberA && isNumberB) {
      if (Number(a) !== Number(b)) return Number(a) - Number(b);
    } else if (isNumberA !== isNumberB) return isNumberA ? -1 : 1;
    else return a < b ? -1 : 1;
  }
  return 0;
}

/** What is remembered between two requests. */
interface Content {
  /** When the last request was sent, also one that failed; `null` before the first. */
  checkedAtMs: number | null;
  latest?: Release;
  /** Why the last request failed. */
  error?: string;
}

/** Key in the table `setting`, and kind of the change events. */
const KEY = "release_check";
const CHECK_EVERY_MS = 24 * 60 * 60 * 1000;

/** What is known about newer versions. */
export interface ReleaseState {
  /** `null` before the first request. */
  checkedAtMs: number | null;
  /** `undefined` if this version is the newest one known. */
  newer?: Release;
  error?: string;
}

/** What the check needs. */
interface ReleaseCheckDeps extends SealedSettingDeps, ReleaseTransport {
  source: ReleaseSource | undefined;
  /** This version. */
  version: string;
  /** Whether the owner wants the request. */
  isWanted(): boolean;
  now(): number;
  log: Log;
}

/** The daily request, and what it found. */
export class ReleaseCheck {
  readonly #deps: ReleaseCheckDeps;
  readonly #setting: SealedSetting<Content>;
  readonly #end = new AbortController();
  #running: Promise<void> | undefined;

  /** @param deps.sealer For the purpose "settings". */
  constructor(deps: ReleaseCheckDeps) {
    this.#deps = deps;
    this.#setting = new SealedSetting(deps, { key: KEY, label: "release check", defaults: { checkedAtMs: null } });
  }

  /** Host to ask; `undefined` without an address. */
  get host(): string | undefined {
    return this.#deps.source && new URL(this.#deps.source.url).host;
  }

  /** @throws {AppError} `internal` if what is stored can't be decrypted */
  getState(): ReleaseState {
    const { checkedAtMs, latest, error } = this.#setting.load().content;
    const isAnnounced = latest !== undefined && isNewer(latest.version, this.#deps.version);
    return { checkedAtMs, ...(isAnnounced && { newer: latest }), ...(error !== undefined && { error }) };
  }

  /** Sends the request in the background, if it's wanted and the last one was a day ago. */
  look(): void {
    const { log } = this.#deps;
    this.#running ??= this.#check()
      .catch((error) => log("error", "Can't look for new versions", { error: getErrorMessage(error) }))
      .finally(() => this.#running = undefined);
  }

  async #check(): Promise<void> {
    const { source, isWanted, now, log } = this.#deps;
    if (source === undefined || this.#end.signal.aborted || !isWanted()) return;
    const { checkedAtMs } = this.#setting.load().content;
    const ageMs = now() - (checkedAtMs ?? -Infinity);
    // A time in the future comes from a clock that was wrong.
    if (ageMs >= 0 && ageMs < CHECK_EVERY_MS) return;
    // Before the request, so that a server that is restarted during it doesn't send another.
    await this.#setting.change((before) => ({ ...before, checkedAtMs: now() }));
    try {
      const latest = await fetchRelease(source, this.#deps, this.#end.signal);
      await this.#setting.change(({ checkedAtMs }) => ({ checkedAtMs, latest }));
      if (isNewer(latest.version, this.#deps.version)) {
        log("info", "A new version is available", { version: latest.version });
      }
    } catch (thrown) {
      if (this.#end.signal.aborted) return;
      const error = getErrorMessage(thrown);
      log("warn", "Can't look for new versions", { error });
      await this.#setting.change((before) => ({ ...before, error }));
    }
  }

  /** Cancels a running request. */
  async close(): Promise<void> {
    this.#end.abort(new AppError("not_available", "Parlor is shutting down"));
    await this.#running;
  }
}
