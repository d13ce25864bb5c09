/**
 * Finds the fields that a server rejects, in all error formats, sends the request again without them, and remembers
 * them (docs/protocols/llm.md, "Dialects").
 */
import { createHash } from "node:crypto";
import { isJsonObject } from "../json/type_guards.ts";
import { UpstreamError } from "../http/upstream_error.ts";
import type { ChatMessage } from "./chat_event.ts";
import type { LeftOutField, SentFacts, UpstreamTarget } from "./provider.ts";
import type { ModelCall } from "./model_call.ts";
import { findRefusedTool, getToolName } from "./dialects/tool_definitions.ts";

/** Essential fields. They're never left out. */
const REQUIRED_FIELDS = new Set(["model", "messages", "stream", "tools", "system"]);
/** Names that servers use for the limit of a reply. */
const LIMIT_NAMES = ["max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens"];

/** A field of the request that the server rejects. */
export interface RefusedField {
  field: string;
  /** The name that the server expects instead, for a limit. */
  replacement?: string;
}

/** Returns whether a field is the limit of a reply. */
export function isLimitName(field: string): boolean {
  return LIMIT_NAMES.includes(field);
}

/**
 * Returns the fields that an error gives as the reason for rejecting a request.
 *
 * Names in structured fields take precedence over names in text. Required fields and fields that weren't sent are never
 * returned.
 *
 * @param text The body of a response with status 400 or 422.
 * @param sent The fields of the request.
 */
export function findRefusedFields(text: string, sent: Iterable<string>): RefusedField[] {
  const value = parseJson(text);
  const structured = new Set<string>();
  const messages: string[] = [];
  if (value === undefined) messages.push(text);
  else collect(value, structured, messages, 0);
  const message = messages.join("\n");
  for (const field of [...findPythonLocations(message), ...findUnknownNames(message)]) structured.add(field);
  const known = new Set(sent);
  // A server that names its reason in a structured field may mention other fields in its text.
  const named = structured.size > 0
    ? [...structured].filter((field) => known.has(field))
    : [...known].filter((field) => isNamedInText(field, withoutSuggestions(message)));
  const removable = named.filter((field) => !REQUIRED_FIELDS.has(field));
  return removable.map((field) => {
    const replacement = isLimitName(field)
      ? LIMIT_NAMES.find((name) => name !== field && !known.has(name) && hasWord(message, name))
      : undefined;
    return replacement === undefined ? { field } : { field, replacement };
  });
}

/** Collects the names in structured fields, and all messages. */
function collect(value: unknown, structured: Set<string>, messages: string[], depth: number): void {
  if (depth > 6) return;
  if (typeof value === "string") {
    // Older Mistral and OpenRouter's providers: JSON inside text.
    const inner = /^\s*[{[]/.test(value) ? parseJson(value) : undefined;
    return inner === undefined ? void messages.push(value) : collect(inner, structured, messages, depth + 1);
  }
  if (Array.isArray(value)) {
    for (const entry of value.slice(0, 50)) collect(entry, structured, messages, depth + 1);
    return;
  }
  if (!isJsonObject(value)) return;
  // OpenAI: `param`. FastAPI: `loc`. Google: `fieldViolations[].field`.
  for (const path of [value.param, value.field]) {
    if (typeof path === "string" && path !== "") structured.add(toTopLevel(path));
  }
  if (Array.isArray(value.loc)) {
    const [first, second] = value.loc;
    const name = first === "body" ? second : first;
    if (typeof name === "string") structured.add(toTopLevel(name));
  }
  for (const name of ["error", "detail", "details", "message", "msg", "description", "fieldViolations", "errors"]) {
    if (name in value) collect(value[name], structured, messages, depth + 1);
  }
  // OpenRouter passes on the provider's response as text.
  if (isJsonObject(value.metadata)) collect(value.metadata.raw, structured, messages, depth + 1);
}

/** Finds FastAPI's locations in text with Python syntax: `'loc': ('body', 'top_k')`. */
function findPythonLocations(text: string): string[] {
  return [...text.matchAll(/'loc': [([]'body', '([A-Za-z_][\w.]*)'/g)].map((match) => toTopLevel(match[1]!));
}

/** Finds Google's names of top-level fields. Nested ones are followed by a location: `at 'tools[0]'`. */
function findUnknownNames(text: string): string[] {
  return [...text.matchAll(/Unknown name \\?"([\w.]+)\\?"(?! at ')/g)].map((match) => match[1]!);
}

/** Removes fields that a server suggests instead of the rejected one, and Google's names of nested fields. */
function withoutSuggestions(text: string): string {
  const own = text.replace(/Unknown name \\?"[^"\\]*\\?" at '[^']*'/g, "");
  return own.replace(/did you mean ["'`]?[\w.]+["'`]?|\buse ["'`]?[\w.]+["'`]? instead/gi, "");
}

/** Returns the top-level field of a path, for example of `stream_options.include_usage` or `messages[0].content`. */
function toTopLevel(path: string): string {
  return path.replace(/^body\./, "").split(/[.[]/)[0]!;
}

/**
 * Reports whether a text names a field. Ordinary words such as `stop` or `user` only count if the text marks them as a
 * name.
 */
function isNamedInText(field: string, text: string): boolean {
  if (/[_\d]/.test(field) || field === "temperature") return hasWord(text, field);
  const name = escape(field);
  return new RegExp(
    `["'\`]${name}["'\`]|\\b(argument|parameter|field|property|name)s?:? ["'\`]?${name}\\b|^${name}:`,
    "im",
  )
    .test(text);
}

function hasWord(text: string, word: string): boolean {
  return new RegExp(`(?<![\\w.-])${escape(word)}(?![\\w-])`).test(text);
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// Models that reject a trailing assistant message, the start of a reply to continue.

/** Stands for the trailing message in the list of rejected fields. */
const FIELD = "prefill";

/** Matches the errors of Anthropic's newer models and of vLLM's and Mistral's templates. */
const REFUSAL =
  /prefill|must end with a user message|(last|final) message (must|should|role).*(user|tool)|expected last role user/i;

/** Reports whether a model is known to reject the start of a reply. */
export function refusesPrefill({ connection }: UpstreamTarget, model: string): boolean {
  return connection?.memory?.list(model).some(({ wire }) => wire === FIELD) ?? false;
}

/**
 * Remembers that a model rejects the start of a reply, if an error says so.
 *
 * @param messages The messages that were sent.
 * @returns Whether it was learned, so that the call should be repeated.
 */
export function learnPrefillRefusal(
  { connection }: UpstreamTarget,
  model: string,
  messages: readonly ChatMessage[],
  error: unknown,
): boolean {
  if (!(error instanceof UpstreamError) || (error.status !== 400 && error.status !== 422)) return false;
  if (connection?.memory === undefined || messages.at(-1)?.role !== "assistant" || !REFUSAL.test(error.message)) {
    return false;
  }
  const reason = error.reported ?? error.message;
  connection.memory.add(model, { wire: FIELD, field: FIELD, status: error.status, reason });
  return true;
}

/** Maximum number of tools to leave out of a call one by one. */
const MAX_REFUSED_TOOLS = 16;
/** Maximum number of retries of a call. */
const MAX_MORE_TRIES = 3;
const MAX_REASON_CHARS = 300;

/** A learned rejection. */
export interface Refusal {
  /** The field as it was sent. */
  wire: string;
  /** The caller's name of the field, if the dialect has a different one. */
  field: string;
  /** The name that the server expects. */
  sentAs?: string;
  status: number;
  /** The server's explanation. */
  reason: string;
}

/** The rejected fields of one model of a connection. */
export interface RefusalMemory {
  list(model: string): readonly Refusal[];
  add(model: string, refusal: Refusal): void;
}

/** The body of a chat request. */
export interface ModelRequestBody {
  fields: Record<string, unknown>;
  /** The caller's names of fields that the dialect renames or derives. */
  callerNames?: ReadonlyMap<string, string>;
  /** The server's messages that reject a field without naming it, by field. */
  refusalTexts?: Readonly<Record<string, RegExp>>;
  /** Fields that this protocol requires. */
  requiredFields?: readonly string[];
  /** What the dialect doesn't have, so that it isn't in `fields`. */
  leftOut?: readonly LeftOutField[];
}

/** Maximum number of servers without a connection to remember. */
const MAX_SERVERS = 200;

/** The rejected fields of servers that aren't saved as a connection, until the process ends. */
export class UnsavedRefusals {
  readonly #known = new Map<string, Refusal[]>();

  /** Returns the rejected fields of a server. */
  isAt(baseUrl: string): RefusalMemory {
    const createKey = (model: string) => `${baseUrl}\n${model}`;
    return {
      list: (model) => this.#known.get(createKey(model)) ?? [],
      add: (model, refusal) => {
        if (this.#known.size >= MAX_SERVERS) this.#known.clear();
        this.#known.set(createKey(model), [...this.#known.get(createKey(model)) ?? [], refusal]);
      },
    };
  }
}

/**
 * Sends a chat request. If the server rejects fields, sends it again without them, at most three times, and remembers
 * them. A rejected limit is sent again under the name that the server expects.
 *
 * @param unsaved Remembers rejected fields for a target without a connection.
 * @param send Sends one body.
 * @returns The response of status 2xx, and what was sent.
 * @throws {UpstreamError} The error that the server reported
 */
export async function sendLearning(
  call: ModelCall,
  model: string,
  body: ModelRequestBody,
  unsaved: UnsavedRefusals,
  send: (body: Record<string, unknown>) => Promise<Response>,
): Promise<{ response: Response; sent: SentFacts }> {
  const memory = call.target.connection?.memory ?? unsaved.isAt(call.target.baseUrl);
  const refusals = [...memory.list(model)];
  for (let tries = 0, toolTries = 0;; tries++) {
    const { fields, leftOut } = applyRefusals(body.fields, refusals);
    const response = await send(fields);
    if (response.ok) {
      const all = [...body.leftOut ?? [], ...leftOut];
      return { response, sent: { leftOut: all, outputLimit: readOutputLimit(fields) } };
    }
    const { error, text } = await call.readErrorText(response);
    const tool = toolTries < MAX_REFUSED_TOOLS ? findToolRefusal(error, text, fields) : undefined;
    if (tool !== undefined) {
      refusals.push(tool);
      memory.add(model, tool);
      tries--;
      toolTries++;
      continue;
    }
    const found = findNewRefusals(error, text, { ...body, fields }, refusals);
    if (found.length === 0 || tries === MAX_MORE_TRIES) throw error;
    for (const { field: wire, replacement } of found) {
      const refusal: Refusal = {
        wire,
        field: body.callerNames?.get(wire) ?? wire,
        ...(replacement !== undefined && { sentAs: replacement }),
        status: error.status!,
        reason: toReason(error.reported ?? error.message),
      };
      refusals.push(refusal);
      memory.add(model, refusal);
    }
  }
}

/** Returns the refusal of a single tool, if an error is about one. */
function findToolRefusal(error: UpstreamError, text: string, { tools }: Record<string, unknown>): Refusal | undefined {
  const isAboutRequest = error.status === 400 || error.status === 422;
  if (!isAboutRequest || error.kind !== "failed" || !Array.isArray(tools)) return undefined;
  const index = findRefusedTool(text, tools);
  if (index === undefined) return undefined;
  return {
    wire: createToolKey(tools[index]),
    field: `tools: ${getToolName(tools[index])}`,
    status: error.status!,
    reason: toReason(error.reported ?? error.message),
  };
}

/** Identifies a tool by its name and definition, so that a corrected one is offered again. */
function createToolKey(tool: unknown): string {
  const hash = createHash("sha256").update(JSON.stringify(tool)).digest("base64url").slice(0, 12);
  return `tools: ${getToolName(tool)} ${hash}`;
}

/**
 * Returns newly rejected fields. Only statuses 400 and 422 are about the request itself. The error of a prompt that is
 * too long names its limit, but that isn't the reason.
 */
function findNewRefusals(error: UpstreamError, text: string, body: ModelRequestBody, known: Refusal[]) {
  const { fields, refusalTexts, requiredFields = [] } = body;
  if ((error.status !== 400 && error.status !== 422) || error.kind === "overflow") return [];
  const described = Object.entries(refusalTexts ?? {})
    .filter(([field, pattern]) => field in fields && pattern.test(text))
    .map(([field]): RefusedField => ({ field }));
  const found = described.length > 0 ? described : findRefusedFields(text, Object.keys(fields));
  return found.filter(({ field }) => !requiredFields.includes(field) && !known.some(({ wire }) => wire === field));
}

/** Returns the body without rejected fields, and with limits under the names that the server expects. */
function applyRefusals(body: Record<string, unknown>, refusals: readonly Refusal[]) {
  const fields = { ...body };
  const leftOut: LeftOutField[] = [];
  for (const { wire, field, sentAs, status, reason } of refusals) {
    if (wire.startsWith("tools: ")) {
      if (leaveOutTool(fields, wire)) leftOut.push({ field, status, reason });
      continue;
    }
    if (!(wire in fields)) continue;
    const value = fields[wire];
    delete fields[wire];
    if (sentAs !== undefined) fields[sentAs] ??= value;
    else leftOut.push({ field, status, reason });
  }
  return { fields, leftOut };
}

/** Removes a tool from a request. Returns whether the request had it. */
function leaveOutTool(fields: Record<string, unknown>, key: string): boolean {
  if (!Array.isArray(fields.tools)) return false;
  const others = fields.tools.filter((tool) => createToolKey(tool) !== key);
  if (others.length === fields.tools.length) return false;
  fields.tools = others;
  if (others.length === 0) delete fields.tools;
  // A forced call of this tool can't be made, and there's nothing to choose from without tools.
  if (others.length === 0 || isJsonObject(fields.tool_choice)) delete fields.tool_choice;
  return true;
}

/** Returns the token limit of the reply in a request. */
function readOutputLimit(fields: Record<string, unknown>): number | undefined {
  const limit = Object.entries(fields).find(([name, value]) => isLimitName(name) && typeof value === "number");
  return limit?.[1] as number | undefined;
}

function toReason(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > MAX_REASON_CHARS ? `${line.slice(0, MAX_REASON_CHARS)}…` : line;
}
