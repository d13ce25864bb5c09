/**
 * The settings of the built-in web tools, an encrypted document, and requests to their SearXNG server
 * (docs/protocols/searxng.md).
 */
import { AppError } from "../../errors.ts";
import { normalizeBaseUrl } from "../../http/base_url.ts";
import { SealedSetting, type SealedSettingDeps } from "../../storage/documents/sealed_document.ts";
import type { ExpectedVersion } from "../../storage/preconditions.ts";
import type { ToolPermission } from "../tool_registry.ts";
import { createResponseError, findErrorMessage, readBytes, readErrorText } from "../../http/read_body.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import { asArray, asObject, asText, type JsonObject, parseJsonBytes } from "../../json/type_guards.ts";

/** The settings as they are in effect. */
export interface WebConfig {
  /** Address of the SearXNG server, without a trailing slash. `undefined` if there is none. */
  searchUrl?: string;
  /** Whether `web_search` is offered to models. */
  canSearch: boolean;
  /** Whether `read_page` is offered to models. */
  canReadPages: boolean;
  /** True if the settings came with an import. Both tools are off until the owner changes a setting. */
  isHeld?: true;
  /** Increases with every write; 0 before the first one. */
  version: number;
}

/** Changes to the settings. `undefined` fields don't change. */
export interface WebConfigInput {
  /** `null` or an empty text removes the address. */
  searchUrl?: string | null;
  search?: boolean;
  readPage?: boolean;
}

/** The settings in an export. */
export interface WebConfigExport {
  searchUrl: string;
  /** Absent if the owner didn't decide. */
  search?: boolean;
  readPage?: boolean;
}

/** A permission, and the definition of the tool for which it's valid. */
interface StoredPermission {
  permission: ToolPermission;
  fingerprint: string;
}

/** Until the owner decides about the tools, both are on if there is an address. */
interface Content extends WebConfigExport {
  /** Like in `WebConfig`. */
  isHeld?: true;
  permissions: Record<string, StoredPermission>;
}

const DEFAULTS: Content = { searchUrl: "", permissions: {} };

/** The settings of the web tools. */
export class WebSettings {
  readonly #setting: SealedSetting<Content>;

  /** @param deps.sealer For the purpose "web tools". */
  constructor(deps: SealedSettingDeps) {
    this.#setting = new SealedSetting(deps, { key: "web_tools", label: "web settings", defaults: DEFAULTS });
  }

  /** @throws {AppError} `internal` if the stored settings can't be decrypted */
  get(): WebConfig {
    const { version, content: { searchUrl, search, readPage, isHeld } } = this.#setting.load();
    const hasAddress = searchUrl !== "";
    return {
      ...(hasAddress && { searchUrl }),
      canSearch: !isHeld && hasAddress && search !== false,
      canReadPages: !isHeld && (readPage ?? hasAddress),
      ...(isHeld && { isHeld }),
      version,
    };
  }

  /** Returns the settings for an export; `undefined` if the owner never changed them. */
  getExport(): WebConfigExport | undefined {
    const { searchUrl, search, readPage } = this.#setting.load().content;
    const isChanged = searchUrl !== "" || search !== undefined || readPage !== undefined;
    return isChanged ? { searchUrl, search, readPage } : undefined;
  }

  /** Replaces the settings by those of an export. Both tools stay off until the owner changes a setting. */
  async import({ searchUrl, search, readPage }: WebConfigExport): Promise<void> {
    const content = { searchUrl: normalizeSearchUrl(searchUrl), search, readPage, isHeld: true } as const;
    await this.#setting.change((before) => ({ ...before, ...content }));
  }

  /**
   * Changes the settings. Of imported ones, a tool that isn't turned on stays off, unless the address is set.
   *
   * @param expectedVersion The version the stored settings must have.
   * @throws {AppError} `invalid_request`, `address_not_allowed`, `revision_mismatch`
   */
  async put(input: WebConfigInput, expectedVersion?: ExpectedVersion): Promise<WebConfig> {
    const { searchUrl, search, readPage } = input;
    await this.#setting.change(({ isHeld, ...before }) => ({
      ...before,
      ...(isHeld && searchUrl === undefined && { search: false, readPage: false }),
      ...(searchUrl !== undefined && { searchUrl: normalizeSearchUrl(searchUrl ?? "") }),
      ...(search !== undefined && { search }),
      ...(readPage !== undefined && { readPage }),
    }), expectedVersion);
    return this.get();
  }

  /** Finds the permission of a tool; "ask" if none is stored for its current definition. */
  findPermission(name: string, fingerprint: string): ToolPermission {
    const stored = this.#setting.load().content.permissions[name];
    return stored !== undefined && stored.fingerprint === fingerprint ? stored.permission : "ask";
  }

  /** Stores the permission of a tool. */
  async setPermission(name: string, stored: StoredPermission): Promise<void> {
    await this.#setting.change((before) => ({
      ...before,
      permissions: { ...before.permissions, [name]: stored },
    }));
  }
}

/**
 * Normalizes the address of a SearXNG server pasted by a user, which may be that of its search page with a query.
 *
 * @returns An empty string for an empty one.
 * @throws {AppError} `invalid_request`, `address_not_allowed`
 */
export function normalizeSearchUrl(text: string): string {
  if (text.trim() === "") return "";
  if (/^\s*(https?:\/\/)?[^/?#\s]*@/i.test(text)) {
    const message = "Can't use the address: it contains credentials, and Parlor can't sign in to a SearXNG server";
    throw new AppError("invalid_request", message, { issues: [{ path: "search_url", message }] });
  }
  return normalizeBaseUrl(text).replace(/\/search$/, "");
}

/** What to search for. */
export interface WebQuery {
  text: string;
  /** Page number, from 1. */
  page?: number;
  timeRange?: "day" | "month" | "year";
}

/** One result. */
export interface WebResult {
  title: string;
  url: string;
  /** A few sentences; may be empty. */
  snippet: string;
  /** In the server's format. Most results have none. */
  publishedAt?: string;
}

/** Results of a search. */
export interface WebResults {
  results: WebResult[];
  /** Short answers of engines: a conversion, a definition. */
  answers: string[];
  /** Engines that didn't respond, with the reason: `"google (timeout)"`. Often some fail while others find results. */
  failedEngines: string[];
}

/** Maximum number of results per search. A page of SearXNG has about 20 to 30. */
const MAX_RESULTS = 10;
const MAX_ANSWERS = 3;
const MAX_ENGINES = 10;
const MAX_TITLE = 200;
const MAX_SNIPPET = 500;
const MAX_URL = 2_000;
/** A page of results takes about 50 KiB. Parsing this much takes a few milliseconds. */
const MAX_RESPONSE_BYTES = 1024 * 1024;
/** SearXNG waits for its engines up to `outgoing.max_request_timeout`, usually 3 to 10 s. */
const TIMEOUTS = { connectMs: 5_000, firstByteMs: 30_000, idleMs: 15_000 };

/** How to fix an error, by status. */
const ADVICE = {
  401: "Parlor can't sign in to it. Use an address without a sign-in",
  403: "it doesn't allow JSON: add json to search.formats in its settings.yml and restart it",
  404: "check the address",
  429: "its limiter allows few searches: turn off server.limiter in its settings.yml, or allow this machine's address",
};

/** Searches with one server. */
export class SearxngServer {
  /** @param baseUrl From `normalizeSearchUrl`. */
  constructor(readonly client: HttpClient, readonly baseUrl: string) {}

  /**
   * Searches.
   *
   * @throws {AppError} `upstream_error`, `upstream_timeout`, `address_not_allowed`
   * @throws The abort reason of `signal`.
   */
  async search({ text, page = 1, timeRange }: WebQuery, signal: AbortSignal): Promise<WebResults> {
    const query = new URLSearchParams({ q: text, format: "json" });
    if (page > 1) query.set("pageno", String(page));
    if (timeRange !== undefined) query.set("time_range", timeRange);
    const target = { baseUrl: this.baseUrl, timeouts: TIMEOUTS };
    const response = await this.client.fetch("the SearXNG server", target, {
      url: `${this.baseUrl}/search?${query}`,
      // Its limiter considers requests that don't accept HTML bots.
      headers: { accept: "application/json, text/html;q=0.1", "accept-language": "en;q=0.5, *;q=0.1" },
    }, signal);
    if (!response.ok) {
      const reported = findErrorMessage(await readErrorText(response, undefined));
      throw createResponseError("The SearXNG server", target, response, reported, ADVICE);
    }
    const isPage = /^text\/html\b/i.test(response.headers.get("content-type") ?? "");
    const bytes = isPage ? (await response.body?.cancel(), undefined) : await readBytes(response, MAX_RESPONSE_BYTES);
    if (isPage) {
      const hint = "Is it the address of a SearXNG server?";
      throw this.#createUnreadableError("web_page", `it's a web page instead of JSON. ${hint}`);
    }
    if (bytes === undefined) {
      throw this.#createUnreadableError("bad_answer", `it's larger than ${MAX_RESPONSE_BYTES} bytes`);
    }
    return this.#parse(bytes);
  }

  #parse(bytes: Uint8Array): WebResults {
    let json: unknown;
    try {
      json = parseJsonBytes(bytes);
    } catch {
      throw this.#createUnreadableError("bad_answer", "it isn't JSON");
    }
    const answer = asObject(json);
    if (!Array.isArray(answer.results)) throw this.#createUnreadableError("bad_answer", "it has no results");
    return {
      results: answer.results.map((result) => toResult(asObject(result))).filter((result) => result !== undefined)
        .slice(0, MAX_RESULTS),
      answers: asArray(answer.answers).map((item) => clean(asText(asObject(item).answer ?? item), MAX_SNIPPET))
        .filter((text) => text !== "").slice(0, MAX_ANSWERS),
      failedEngines: asArray(answer.unresponsive_engines).map(toFailedEngine).filter((text) => text !== "")
        .slice(0, MAX_ENGINES),
    };
  }

  #createUnreadableError(kind: "web_page" | "bad_answer", reason: string): UpstreamError {
    return new UpstreamError(kind, `Can't read the response of the SearXNG server at "${this.baseUrl}": ${reason}`);
  }
}

/** Returns a result; `undefined` if it isn't a web page. */
function toResult({ title, url, content, publishedDate }: JsonObject): WebResult | undefined {
  const address = asText(url);
  if (address.length > MAX_URL || !URL.canParse(address) || !/^https?:/i.test(address)) return undefined;
  const { href } = new URL(address);
  const publishedAt = clean(asText(publishedDate), 40);
  return {
    title: clean(asText(title), MAX_TITLE) || href,
    url: href,
    snippet: clean(asText(content), MAX_SNIPPET),
    ...(publishedAt !== "" && { publishedAt }),
  };
}

/** Formats a failed engine, which is a pair of name and reason. */
function toFailedEngine(engine: unknown): string {
  const [name, reason] = asArray(engine).map((text) => clean(asText(text), 100));
  return !name ? "" : reason ? `${name} (${reason})` : name;
}

/** Returns one line without control characters, truncated between characters. */
function clean(text: string, maxLength: number): string {
  const line = text.slice(0, 10 * maxLength).replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim().toWellFormed();
  return line.length <= maxLength ? line : `${line.slice(0, maxLength).replace(/[\ud800-\udbff]$/, "").trimEnd()}…`;
}
