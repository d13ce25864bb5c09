/** A connection profile as it is stored: one sealed JSON document, its key inside and bound to one origin. */
import { AppError } from "../../errors.ts";
import { type BoundKey, keyAfter } from "../../http/api_key.ts";
import { normaliseBaseUrl } from "../../http/base_url.ts";
import type { ProfileRecord } from "../../storage/documents/sealed_profiles.ts";
import type { ProviderKind, UpstreamTimeouts } from "../provider.ts";

/** A connection profile without its key. */
export interface Connection {
  id: string;
  name: string;
  kind: ProviderKind;
  /** As normaliseBaseUrl leaves it; empty for the demo. */
  baseUrl: string;
  model?: string;
  /** Tokens, as the owner says. */
  contextSize?: number;
  /** Limits of its own, in place of the configured ones. */
  timeouts?: Partial<UpstreamTimeouts>;
  hasKey: boolean;
  isActive: boolean;
  createdAtMs: number;
  updatedAtMs: number;
  /** Moves with every write. */
  version: number;
  /** True when the record cannot be opened: it can only be replaced or removed. */
  isUnreadable?: boolean;
}

/** What an owner enters. Of a stored profile that has the same id, what is left out stays and `null` clears. */
export interface ConnectionInput {
  /** Made by the server when left out. */
  id?: string;
  name?: string | null;
  kind?: ProviderKind | null;
  baseUrl?: string | null;
  model?: string | null;
  contextSize?: number | null;
  timeouts?: Partial<UpstreamTimeouts> | null;
  /** The stored key stays only as long as the origin does. */
  apiKey?: string | null;
}

/** The sealed part. */
export interface ConnectionContent {
  name: string;
  kind: ProviderKind;
  baseUrl: string;
  model?: string;
  contextSize?: number;
  timeouts?: Partial<UpstreamTimeouts>;
  key?: BoundKey;
}

const DEFAULT_URLS: Partial<Record<ProviderKind, string>> = { anthropic: "https://api.anthropic.com" };

/**
 * Checks what an owner entered and makes the content of the record.
 *
 * @param before The stored content under the same id, from which is kept what is left out, the key when it may be.
 * @throws {AppError} `invalid_request`, `address_not_allowed`
 */
export function contentFrom(input: ConnectionInput, before: ConnectionContent | undefined): ConnectionContent {
  const { baseUrl: givenUrl = before?.baseUrl } = input;
  const { model = before?.model, contextSize = before?.contextSize, timeouts = before?.timeouts } = input;
  // The demo has no address: who gives it one makes a model server of it.
  const storedKind = before?.kind === "demo" && input.baseUrl ? undefined : before?.kind;
  const { kind: givenKind = storedKind } = input;
  const kind = givenKind ?? "openai";
  const baseUrl = baseUrlOf(kind, givenUrl);
  // A name that only says where the server was would be wrong beside another address.
  const isOwnName = before !== undefined && before.name !== defaultName(before.kind, before.baseUrl);
  const { name = isOwnName ? before.name : undefined } = input;
  return {
    name: name?.trim() || defaultName(kind, baseUrl),
    kind,
    baseUrl,
    ...(model && { model }),
    ...(contextSize && { contextSize }),
    ...timeoutsFrom(timeouts),
    ...(kind === "demo" ? {} : keyAfter(baseUrl, input.apiKey, before?.key)),
  };
}

/** Leaves out what is not set: an `undefined` would stand in the way of the configured limit. */
function timeoutsFrom(timeouts: Partial<UpstreamTimeouts> | null | undefined): Pick<ConnectionContent, "timeouts"> {
  const set = Object.entries(timeouts ?? {}).filter(([, value]) => value !== undefined && value !== null);
  return set.length === 0 ? {} : { timeouts: Object.fromEntries(set) };
}

function baseUrlOf(kind: ProviderKind, text: string | null | undefined): string {
  if (kind === "demo") return "";
  const given = text?.trim() || DEFAULT_URLS[kind];
  if (given !== undefined) return normaliseBaseUrl(given);
  const message = "a connection needs the base URL of its server";
  throw new AppError("invalid_request", `Cannot save the connection: ${message}`, {
    issues: [{ path: "base_url", message }],
  });
}

function defaultName(kind: ProviderKind, baseUrl: string): string {
  return kind === "demo" ? "Demo" : new URL(baseUrl).host;
}

/** Shows a record without its key. */
export function connectionFrom(record: ProfileRecord<ConnectionContent>, activeId: string | undefined): Connection {
  const { id, version, createdAtMs, updatedAtMs, content } = record;
  const frame = { id, version, createdAtMs, updatedAtMs, isActive: id === activeId };
  if (content === undefined) {
    return { ...frame, name: "Unreadable connection", kind: "openai", baseUrl: "", hasKey: false, isUnreadable: true };
  }
  const { key, ...shown } = content;
  return { ...frame, ...shown, hasKey: key !== undefined };
}
