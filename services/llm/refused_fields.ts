/**
 * Finds the fields that a server refuses, in all the forms servers use, sends the request again without them, and
 * remembers them (docs/protocols/llm.md, "Dialects").
 */
import { isJsonObject } from "../json/type_guards.ts";
import { UpstreamError } from "../http/upstream_error.ts";
import type { ChatMessage } from "./chat_event.ts";
import type { LeftOutField, SentFacts, UpstreamTarget } from "./provider.ts";
import type { ModelCall } from "./model_call.ts";

/** Fields that make the request what it is. They are never left out. */
const REQUIRED_FIELDS = new Set(["model", "messages", "stream", "tools", "system"]);
/** Names under which servers know the limit of a reply. */
const LIMIT_NAMES = ["max_completion_tokens", "max_tokens", "max_output_tokens", "max_new_tokens"];

/** A field of the request that the server refuses. */
export interface RefusedField {
  field: string;
  /** The name under which the server wants it, for a limit. */
  replacement?: string;
}

/** Returns whether a field is the limit of a reply. */
export function isLimitName(field: string): boolean {
  return LIMIT_NAMES.includes(field);
}

/**
 * Returns the fields that an error names as the reason of the refusal.
 *
 * What the server names in a structured place counts before its text. A required field is never returned, nor one that wasn't
 * sent.
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
  // A server that names its reason precisely may mention other fields in its text.
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

/** Collects the names in structured places, and all messages. */
function collect(value: unknown, structured: Set<string>, messages: string[], depth: number): void {
  if (depth > 6) return;
  if (typeof value === "string") {
    // Older Mistral and OpenRouter's providers: JSON inside of text.
    const inner = /^\s*[{[]/.test(value) ? parseJson(value) : undefined;
    return inner === undefined ? void messages.push(value) : collect(inner, structured, messages, depth + 1);
  }
  if (Array.isArray(value)) {
    for (const entry of value.slice(0, 50)) collect(entry, structured, messages, depth + 1);
    return;
  }
  if (!isJsonObject(value)) return;
  // OpenAI: `param`. FastAPI: `loc`. Google: `fieldViolations[].field`.
  for (const place of [value.param, value.field]) {
    if (typeof place === "string" && place !== "") structured.add(toTopLevel(place));
  }
  if (Array.isArray(value.loc)) {
    const [first, second] = value.loc;
    const name = first === "body" ? second : first;
    if (typeof name === "string") structured.add(toTopLevel(name));
  }
  for (const name of ["error", "detail", "details", "message", "msg", "description", "fieldViolations", "errors"]) {
    if (name in value) collect(value[name], structured, messages, depth + 1);
  }
  // OpenRouter passes on what the provider said, as text.
  if (isJsonObject(value.metadata)) collect(value.metadata.raw, structured, messages, depth + 1);
}

/** FastAPI's locations as text of Python: `'loc': ('body', 'top_k')`. */
function findPythonLocations(text: string): string[] {
  return [...text.matchAll(/'loc': [([]'body', '([A-Za-z_][\w.]*)'/g)].map((match) => toTopLevel(match[1]!));
}

/** Google's names of fields of the request itself; those inside of others have a place behind them: `at 'tools[0]'`. */
function findUnknownNames(text: string): string[] {
  return [...text.matchAll(/Unknown name \\?"([\w.]+)\\?"(?! at ')/g)].map((match) => match[1]!);
}

/** Drops fields that a server suggests in place of the refused one, and Google's names inside of other fields. */
function withoutSuggestions(text: string): string {
  const own = text.replace(/Unknown name \\?"[^"\\]*\\?" at '[^']*'/g, "");
  return own.replace(/did you mean ["'`]?[\w.]+["'`]?|\buse ["'`]?[\w.]+["'`]? instead/gi, "");
}

/** `stream_options.include_usage` and `messages[0].content` belong to their first part. */
function toTopLevel(path: string): string {
  return path.replace(/^body\./, "").split(/[.[]/)[0]!;
}

/** Ordinary words, such as `stop` or `user`, count only if the text marks them as a name. */
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

// Models that refuse a trailing assistant message, the start of a reply that they should continue.

/** Stands for the trailing message among the refused fields. */
const FIELD = "prefill";

/** What servers say: Anthropic's newer models, vLLM's and Mistral's templates. */
const REFUSAL =
  /prefill|must end with a user message|(last|final) message (must|should|role).*(user|tool)|expected last role user/i;

/** Reports whether a model is known to refuse the start of a reply. */
export function refusesPrefill({ connection }: UpstreamTarget, model: string): boolean {
  return connection?.memory?.list(model).some(({ wire }) => wire === FIELD) ?? false;
}

/**
 * Remembers that a model refuses the start of a reply, if that is what an error says.
 *
 * @param messages The messages that were sent.
 * @returns Whether it was learned, so that the call is worth another try.
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

/** Tries of one question after its first. */
const MAX_MORE_TRIES = 3;
const MAX_REASON_CHARS = 300;

/** A refusal that was learned. */
export interface Refusal {
  /** The field as it was sent. */
  wire: string;
  /** The caller's name of the field, where the dialect has another one. */
  field: string;
  /** The name under which the server wants it. */
  sentAs?: string;
  status: number;
  /** What the server said. */
  reason: string;
}

/** The refusals of one model at one connection. */
export interface RefusalMemory {
  list(model: string): readonly Refusal[];
  add(model: string, refusal: Refusal): void;
}

/** The body of a chat request. */
export interface ModelRequestBody {
  fields: Record<string, unknown>;
  /** The caller's names of fields that the dialect renames or derives. */
  callerNames?: ReadonlyMap<string, string>;
  /** What the server says where it refuses a field without naming it, by field. */
  refusalTexts?: Readonly<Record<string, RegExp>>;
  /** Fields that this protocol can't do without. */
  requiredFields?: readonly string[];
}

/** Servers that are remembered without a connection. */
const MAX_SERVERS = 200;

/** The refusals of servers that aren't saved as a connection, until the end of the process. */
export class UnsavedRefusals {
  readonly #known = new Map<string, Refusal[]>();

  /** Returns the refusals of one server. */
  at(baseUrl: string): RefusalMemory {
    const keyOf = (model: string) => `${baseUrl}\n${model}`;
    return {
      list: (model) => this.#known.get(keyOf(model)) ?? [],
      add: (model, refusal) => {
        if (this.#known.size >= MAX_SERVERS) this.#known.clear();
        this.#known.set(keyOf(model), [...this.#known.get(keyOf(model)) ?? [], refusal]);
      },
    };
  }
}

/**
 * Sends a chat request. Where the server refuses fields by name, sends it once more without each newly named field, at most
 * three times, and remembers the refusals. A refused limit is sent under the name that the server asks for.
 *
 * @param unsaved Remembers for a target without a connection.
 * @param send Sends one body.
 * @returns The response of status 2xx, and what was sent.
 * @throws {UpstreamError} what the server reported
 */
export async function sendLearning(
  call: ModelCall,
  model: string,
  body: ModelRequestBody,
  unsaved: UnsavedRefusals,
  send: (body: Record<string, unknown>) => Promise<Response>,
): Promise<{ response: Response; sent: SentFacts }> {
  const memory = call.target.connection?.memory ?? unsaved.at(call.target.baseUrl);
  const refusals = [...memory.list(model)];
  for (let tries = 0;; tries++) {
    const { fields, leftOut } = applyRefusals(body.fields, refusals);
    const response = await send(fields);
    if (response.ok) return { response, sent: { leftOut, outputLimit: readOutputLimit(fields) } };
    const { error, text } = await call.readErrorText(response);
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

/** Only 400 and 422 are about the request itself. One that is too long names its limit, but that isn't the reason. */
function findNewRefusals(error: UpstreamError, text: string, body: ModelRequestBody, known: Refusal[]) {
  const { fields, refusalTexts, requiredFields = [] } = body;
  if ((error.status !== 400 && error.status !== 422) || error.kind === "overflow") return [];
  const described = Object.entries(refusalTexts ?? {})
    .filter(([field, pattern]) => field in fields && pattern.test(text))
    .map(([field]): RefusedField => ({ field }));
  const found = described.length > 0 ? described : findRefusedFields(text, Object.keys(fields));
  return found.filter(({ field }) => !requiredFields.includes(field) && !known.some(({ wire }) => wire === field));
}

/** Returns the body without refused fields, limits under the name that the server asked for. */
function applyRefusals(body: Record<string, unknown>, refusals: readonly Refusal[]) {
  const fields = { ...body };
  const leftOut: LeftOutField[] = [];
  for (const { wire, field, sentAs, status, reason } of refusals) {
    if (!(wire in fields)) continue;
    const value = fields[wire];
    delete fields[wire];
    if (sentAs !== undefined) fields[sentAs] ??= value;
    else leftOut.push({ field, status, reason });
  }
  return { fields, leftOut };
}

/** Returns the limit of the reply in a request, in tokens. */
function readOutputLimit(fields: Record<string, unknown>): number | undefined {
  const limit = Object.entries(fields).find(([name, value]) => isLimitName(name) && typeof value === "number");
  return limit?.[1] as number | undefined;
}

function toReason(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > MAX_REASON_CHARS ? `${line.slice(0, MAX_REASON_CHARS)}…` : line;
}
