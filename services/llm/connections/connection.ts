/** A connection profile: an encrypted JSON document that includes the API key, which is bound to one origin. */
import { AppError } from "../../errors.ts";
import {
  type BoundHeaders,
  type BoundKey,
  normalizeBaseUrl,
  updateBoundKey,
  updateHeaders,
} from "../../http/base_url.ts";
import type { ProfileRecord } from "../../storage/documents/sealed_profiles.ts";
import type { CallTimeouts } from "../../http/upstream_error.ts";
import type { DialectName } from "../dialects/dialect.ts";
import type { ProviderKind } from "../provider.ts";

/** A connection profile without its key. */
export interface Connection {
  id: string;
  name: string;
  kind: ProviderKind;
  /** From `normalizeBaseUrl`, with the query. Empty for the demo. */
  baseUrl: string;
  model?: string;
  /** Number of tokens, entered by the owner. */
  contextSize?: number;
  /** The same for single models, by name. They take precedence. */
  contextSizes?: Record<string, number>;
  /** Override the configured timeouts. */
  timeouts?: Partial<CallTimeouts>;
  hasKey: boolean;
  /** Names of the additional headers. */
  headerNames?: string[];
  /** Additional fields of chat requests. */
  extraBody?: Record<string, unknown>;
  /** The dialect, if the owner chose one. */
  serverOverride?: DialectName;
  /** Whether the provider of the Responses API may store replies while they're written. */
  background?: boolean;
  isActive: boolean;
  createdAtMs: number;
  updatedAtMs: number;
  /** Changes with every write. */
  version: number;
  /** True if the record can't be decrypted. It can only be replaced or deleted. */
  isUnreadable?: boolean;
}

/** Input for a profile. For a stored profile, `undefined` fields don't change and `null` clears a field. */
export interface ConnectionInput {
  /** Generated if undefined. */
  id?: string;
  name?: string | null;
  kind?: ProviderKind | null;
  baseUrl?: string | null;
  model?: string | null;
  contextSize?: number | null;
  /** `null` removes one model's size, or all of them; other models keep theirs. */
  contextSizes?: Record<string, number | null> | null;
  timeouts?: Partial<CallTimeouts> | null;
  /** The stored key only stays if the origin stays the same. */
  apiKey?: string | null;
  /** Like in `updateHeaders`. */
  headers?: Record<string, string | null> | null;
  extraBody?: Record<string, unknown> | null;
  serverOverride?: DialectName | null;
  background?: boolean | null;
}

/** The encrypted content. */
export interface ConnectionContent {
  name: string;
  kind: ProviderKind;
  baseUrl: string;
  model?: string;
  contextSize?: number;
  contextSizes?: Record<string, number>;
  timeouts?: Partial<CallTimeouts>;
  key?: BoundKey;
  headers?: BoundHeaders;
  extraBody?: Record<string, unknown>;
  serverOverride?: DialectName;
  background?: boolean;
}

const DEFAULT_URLS: Partial<Record<ProviderKind, string>> = {
  anthropic: "https://api.anthropic.com",
  ollama: "http://127.0.0.1:11434",
};
/** Fields that belong to the request itself. */
const OWN_BODY_FIELDS = ["model", "messages", "stream"];
const MAX_EXTRA_BODY_CHARS = 100_000;
const MAX_SIZED_MODELS = 200;

/**
 * Validates the input for a profile and returns its content.
 *
 * @param stored The stored content of the same ID. `undefined` input fields preserve its values.
 * @throws {AppError} `invalid_request`, `address_not_allowed`
 */
export function parseConnection(input: ConnectionInput, stored: ConnectionContent | undefined): ConnectionContent {
  const { model = stored?.model, contextSize = stored?.contextSize, timeouts = stored?.timeouts } = input;
  const { extraBody = stored?.extraBody, serverOverride = stored?.serverOverride } = input;
  const { background = stored?.background } = input;
  // Entering an address turns the demo into a model server.
  const storedKind = stored?.kind === "demo" && input.baseUrl ? undefined : stored?.kind;
  const kind = (input.kind === undefined ? storedKind : input.kind) ?? "openai";
  const baseUrl = parseBaseUrl(kind, input.baseUrl === undefined ? stored?.baseUrl : input.baseUrl);
  // The default name contains the address, so it changes with the address.
  const hasOwnName = stored !== undefined && stored.name !== getDefaultName(stored.kind, stored.baseUrl);
  const { name = hasOwnName ? stored.name : undefined } = input;
  return {
    name: name?.trim() || getDefaultName(kind, baseUrl),
    kind,
    baseUrl,
    ...(model && { model }),
    ...(contextSize && { contextSize }),
    ...updateContextSizes(stored?.contextSizes, input.contextSizes),
    ...pickTimeouts(timeouts),
    ...(kind === "demo" ? {} : {
      ...updateBoundKey(baseUrl, input.apiKey, stored?.key),
      ...updateHeaders(baseUrl, input.headers, stored?.headers),
      ...parseExtraBody(extraBody),
      ...(serverOverride && { serverOverride }),
      ...(kind === "openai-responses" && background && { background }),
    }),
  };
}

/**
 * Checks additional fields of chat requests. An empty object means none.
 *
 * @throws {AppError} `invalid_request` if it sets the model, the messages or the stream, or is too long
 */
function parseExtraBody(
  extraBody: Record<string, unknown> | null | undefined,
): { extraBody?: Record<string, unknown> } {
  if (extraBody === null || extraBody === undefined || Object.keys(extraBody).length === 0) return {};
  const own = OWN_BODY_FIELDS.find((field) => field in extraBody);
  const message = own !== undefined
    ? `the extra body can't set "${own}"`
    : JSON.stringify(extraBody).length > MAX_EXTRA_BODY_CHARS
    ? `the extra body is longer than ${MAX_EXTRA_BODY_CHARS} characters`
    : undefined;
  if (message === undefined) return { extraBody };
  throw new AppError("invalid_request", `Can't save: ${message}`, { issues: [{ path: "extra_body", message }] });
}

/** @throws {AppError} `invalid_request` for too many models. */
function updateContextSizes(
  stored: Record<string, number> | undefined,
  changes: ConnectionInput["contextSizes"],
): Pick<ConnectionContent, "contextSizes"> {
  const entries = Object.entries(changes === null ? {} : { ...stored, ...changes })
    .filter((entry): entry is [string, number] => entry[1] !== null);
  if (entries.length > MAX_SIZED_MODELS) {
    const message = `at most ${MAX_SIZED_MODELS} models can have a context size`;
    throw new AppError("invalid_request", `Can't save: ${message}`, { issues: [{ path: "context_sizes", message }] });
  }
  return entries.length === 0 ? {} : { contextSizes: Object.fromEntries(entries) };
}

/** Returns the timeouts that are set. An explicit `undefined` would override the configured timeout. */
function pickTimeouts(timeouts: Partial<CallTimeouts> | null | undefined): Pick<ConnectionContent, "timeouts"> {
  const set = Object.entries(timeouts ?? {}).filter(([, value]) => value !== undefined && value !== null);
  return set.length === 0 ? {} : { timeouts: Object.fromEntries(set) };
}

function parseBaseUrl(kind: ProviderKind, text: string | null | undefined): string {
  if (kind === "demo") return "";
  const url = text?.trim() || DEFAULT_URLS[kind];
  if (url !== undefined) return normalizeBaseUrl(url, { keepsQuery: true, keepsPrefix: true });
  const message = "the base URL is required";
  throw new AppError("invalid_request", `Can't save the connection: ${message}`, {
    issues: [{ path: "base_url", message }],
  });
}

function getDefaultName(kind: ProviderKind, baseUrl: string): string {
  return kind === "demo" ? "Demo" : new URL(baseUrl).host;
}

/** Returns the profile of a record, without its key. */
export function toConnection(record: ProfileRecord<ConnectionContent>, activeId: string | undefined): Connection {
  const { id, version, createdAtMs, updatedAtMs, content } = record;
  const frame = { id, version, createdAtMs, updatedAtMs, isActive: id === activeId };
  if (content === undefined) {
    return { ...frame, name: "Unreadable connection", kind: "openai", baseUrl: "", hasKey: false, isUnreadable: true };
  }
  const { key, headers, ...shown } = content;
  const headerNames = Object.keys(headers?.values ?? {});
  return { ...frame, ...shown, hasKey: key !== undefined, ...(headerNames.length > 0 && { headerNames }) };
}
