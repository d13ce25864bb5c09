/** The built-in tools: searching the web with the owner's SearXNG server, and reading a page. Off until configured. */
import { createHash } from "node:crypto";
import { AppError } from "../../errors.ts";
import type { HttpClient } from "../../http/http_client.ts";
import { UpstreamError } from "../../http/upstream_error.ts";
import type { JsonObject } from "../../json/type_guards.ts";
import type {
  Tool,
  ToolCallOptions,
  ToolOutput,
  ToolPermission,
  ToolSource,
  UnavailableServer,
} from "../tool_registry.ts";
import type { PageReader, PageText } from "./page_reader.ts";
import { normalizeSearchUrl, SearxngServer, type WebQuery, type WebResults, type WebSettings } from "./web_settings.ts";

/** Server ID of the built-in tools. */
const WEB_SERVER_ID = "web";

/** Dependencies of `WebTools`. */
export interface WebToolsDeps {
  settings: WebSettings;
  client: HttpClient;
  pages: PageReader;
}

/** The result of a test. */
export interface WebTestResult {
  isWorking: boolean;
  /** Why it doesn't work. */
  error?: string;
  /** Number of results, at most ten. */
  results: number;
  latencyMs: number;
}

/** Maximum number of characters of a page per result: about 5,000 tokens. */
const PAGE_CHARS = 20_000;
const MAX_QUERY = 500;
const MAX_PAGE = 20;
/** A query for which every engine finds results. */
const TEST_QUERY = "weather";

const DEFINITIONS = {
  web_search: {
    description: "Searches the web. Returns titles, addresses and short excerpts. " +
      "Use read_page to read a result before relying on it.",
    inputSchema: {
      type: "object",
      properties: {
        query: { type: "string", description: "What to search for", minLength: 1, maxLength: MAX_QUERY },
        page: { type: "integer", description: "Page of results, from 1", minimum: 1, maximum: MAX_PAGE },
        time_range: { type: "string", enum: ["day", "month", "year"], description: "Only results from this time" },
      },
      required: ["query"],
      additionalProperties: false,
    },
  },
  read_page: {
    description: "Reads the text of a web page, PDF or other document at a public address. " +
      `Returns up to ${PAGE_CHARS} characters; for more, call it again with start.`,
    inputSchema: {
      type: "object",
      properties: {
        url: { type: "string", description: "Address of the page: http or https" },
        start: { type: "integer", description: "Character to start at; 0 is the start of the page", minimum: 0 },
      },
      required: ["url"],
      additionalProperties: false,
    },
  },
} satisfies Record<string, { description: string; inputSchema: JsonObject }>;

type WebToolName = keyof typeof DEFINITIONS;

/** The built-in tools as a source. */
export class WebTools implements ToolSource {
  readonly settings: WebSettings;
  readonly #client: HttpClient;
  readonly #pages: PageReader;

  constructor({ settings, client, pages }: WebToolsDeps) {
    this.settings = settings;
    this.#client = client;
    this.#pages = pages;
  }

  /** Lists the tools that are on. */
  listTools(): Promise<{ tools: Tool[]; unavailable: UnavailableServer[] }> {
    return Promise.resolve({ tools: this.list().filter(({ isOn }) => isOn).map(({ tool }) => tool), unavailable: [] });
  }

  /** Lists all tools and whether each is on. */
  list(): { tool: Tool; isOn: boolean }[] {
    const { canSearch, canReadPages } = this.settings.get();
    return [
      { tool: this.#createTool("web_search"), isOn: canSearch },
      { tool: this.#createTool("read_page"), isOn: canReadPages },
    ];
  }

  async findTool(serverId: string, name: string): Promise<Tool | undefined> {
    if (serverId !== WEB_SERVER_ID) return undefined;
    return (await this.listTools()).tools.find((tool) => tool.name === name);
  }

  async callTool(tool: Tool, args: JsonObject, options: ToolCallOptions): Promise<ToolOutput> {
    const found = await this.findTool(tool.serverId, tool.name);
    if (found === undefined) throw new AppError("not_found", `The tool "${tool.name}" is off`);
    const timeout = AbortSignal.timeout(options.timeoutMs);
    const signal = AbortSignal.any([options.signal, timeout]);
    try {
      const text = found.name === "web_search" ? await this.#search(args, signal) : await this.#readPage(args, signal);
      return toOutput(text, options.maxBytes);
    } catch (error) {
      options.signal.throwIfAborted();
      if (timeout.aborted) {
        const seconds = Math.round(options.timeoutMs / 1000);
        throw new AppError("upstream_timeout", `"${tool.name}" took longer than ${seconds} s`, { cause: error });
      }
      // The model can continue: with other arguments, another page, or without the tool.
      if (error instanceof AppError && FAILURES_OF_TOOL.has(error.code) && !(error instanceof UpstreamError)) {
        return { ...toOutput(error.message, options.maxBytes), isError: true };
      }
      throw error;
    }
  }

  async setPermission({ name, fingerprint }: Tool, permission: ToolPermission): Promise<void> {
    await this.settings.setPermission(name, { permission, fingerprint });
  }

  /** Changes the permission of a tool, even if it's off. @throws {AppError} `not_found` */
  async changePermission(name: string, permission: ToolPermission): Promise<Tool> {
    if (!isWebToolName(name)) throw new AppError("not_found", `Built-in tool "${name}" not found`);
    await this.setPermission(this.#createTool(name), permission);
    return this.#createTool(name);
  }

  /**
   * Searches for a common word.
   *
   * @param searchUrl Address to test; by default the stored one.
   * @throws {AppError} `invalid_request`, `address_not_allowed`: errors in the input, not of the server
   * @throws The abort reason of `signal`.
   */
  async test(searchUrl: string | undefined, signal: AbortSignal): Promise<WebTestResult> {
    const baseUrl = searchUrl === undefined ? this.settings.get().searchUrl : normalizeSearchUrl(searchUrl);
    if (!baseUrl) throw new AppError("invalid_request", "Can't test web search: enter the address of a SearXNG server");
    const startedAtMs = performance.now();
    const getLatencyMs = () => Math.round(performance.now() - startedAtMs);
    try {
      const found = await new SearxngServer(this.#client, baseUrl).search({ text: TEST_QUERY }, signal);
      const results = found.results.length;
      if (results > 0) return { isWorking: true, results, latencyMs: getLatencyMs() };
      return { isWorking: false, error: describeNothing(found), results, latencyMs: getLatencyMs() };
    } catch (thrown) {
      signal.throwIfAborted();
      if (!(thrown instanceof UpstreamError)) throw thrown;
      return { isWorking: false, error: thrown.message, results: 0, latencyMs: getLatencyMs() };
    }
  }

  async #search(args: JsonObject, signal: AbortSignal): Promise<string> {
    const { searchUrl } = this.settings.get();
    const found = await new SearxngServer(this.#client, searchUrl!).search(parseQuery(args), signal);
    if (found.results.length > 0 || found.answers.length > 0) return formatResults(found);
    // Without results, failed engines mean that nothing was searched.
    if (found.failedEngines.length > 0) throw new AppError("unprocessable", describeNothing(found));
    return describeNothing(found);
  }

  async #readPage(args: JsonObject, signal: AbortSignal): Promise<string> {
    const { url, start = 0 } = args;
    if (typeof url !== "string") throw invalidArgument("url must be an http or https address");
    if (!isWholeNumber(start, 0, Number.MAX_SAFE_INTEGER)) {
      throw invalidArgument("start must be a whole number from 0");
    }
    return formatPage(await this.#pages.read(url, signal), start);
  }

  #createTool(name: WebToolName): Tool {
    const { description, inputSchema } = DEFINITIONS[name];
    const fingerprint = createHash("sha256").update(JSON.stringify([description, inputSchema])).digest("hex");
    return {
      serverId: WEB_SERVER_ID,
      serverName: "Web",
      name,
      description,
      inputSchema,
      hints: { readOnly: true, destructive: false },
      permission: this.settings.findPermission(name, fingerprint),
      fingerprint,
    };
  }
}

/** Failures that the model gets as the result of its call. */
const FAILURES_OF_TOOL: ReadonlySet<string> = new Set([
  "invalid_request",
  "address_not_allowed",
  "upstream_error",
  "upstream_timeout",
  "too_large",
  "unprocessable",
]);

function isWebToolName(name: string): name is WebToolName {
  return Object.hasOwn(DEFINITIONS, name);
}

function parseQuery({ query, page = 1, time_range: timeRange }: JsonObject): WebQuery {
  if (typeof query !== "string" || query.trim() === "" || query.length > MAX_QUERY) {
    throw invalidArgument(`query must be a text of 1 to ${MAX_QUERY} characters`);
  }
  if (!isWholeNumber(page, 1, MAX_PAGE)) throw invalidArgument(`page must be a whole number from 1 to ${MAX_PAGE}`);
  if (timeRange !== undefined && timeRange !== "day" && timeRange !== "month" && timeRange !== "year") {
    throw invalidArgument("time_range must be day, month or year");
  }
  return { text: query.trim(), page, timeRange };
}

function isWholeNumber(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && Number(value) >= min && Number(value) <= max;
}

function invalidArgument(message: string): AppError {
  return new AppError("invalid_request", `Can't use the arguments: ${message}`);
}

function formatResults({ results, answers }: WebResults): string {
  const entries = results.map(({ title, url, snippet, publishedAt }, index) =>
    [`${index + 1}. ${title}`, url, publishedAt, snippet].filter(Boolean).join("\n")
  );
  return [...answers.map((answer) => `Answer: ${answer}`), ...entries].join("\n\n");
}

function describeNothing({ failedEngines }: WebResults): string {
  if (failedEngines.length === 0) return "The search found nothing.";
  return `The search found nothing. These engines of the SearXNG server didn't respond: ${failedEngines.join(", ")}.`;
}

function formatPage({ title, url, text }: PageText, start: number): string {
  if (start > 0 && start >= text.length) throw invalidArgument(`the page has only ${text.length} characters`);
  let end = Math.min(start + PAGE_CHARS, text.length);
  // Not inside a surrogate pair.
  if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!)) end--;
  const position = start === 0 && end === text.length
    ? []
    : [`[characters ${start} to ${end} of ${text.length}${end < text.length ? `; for more, use start ${end}` : ""}]`];
  return [...(title === "" ? [] : [title]), url, ...position, "", text.slice(start, end).toWellFormed()].join("\n");
}

function toOutput(text: string, maxBytes: number): ToolOutput {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= maxBytes) return { parts: [{ type: "text", text }], isError: false, truncated: false };
  // A split character is dropped, because `stream` holds it back.
  const cut = new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true });
  return { parts: [{ type: "text", text: cut }], isError: false, truncated: true };
}
