/** The form of a connection and its conversion to the API. */
import type { Connection, ConnectionInput, ConnectionKind } from "../../api/types.ts";
import { completeScheme } from "../../../../services/http/address_scheme.ts";
import { parseOrigin } from "../../components/forms/api_key_state.ts";

/** A dialect by name. */
export type ServerName = NonNullable<NonNullable<ConnectionInput["server"]>["override"]>;

/** A header in the form. */
export interface HeaderField {
  name: string;
  /** Empty keeps the stored value. */
  value: string;
  isStored: boolean;
}

/** The form as typed. */
export interface ConnectionFields {
  name: string;
  kind: ConnectionKind;
  baseUrl: string;
  /** Empty keeps a stored key. */
  apiKey: string;
  model: string;
  contextSize: string;
  /** The dialect that the owner chose; empty for the detected one. */
  server: ServerName | "";
  headers: readonly HeaderField[];
  /** JSON; empty for none. */
  extraBody: string;
  /** Whether the provider of the Responses API may store replies while they're written. */
  background: boolean;
}

/** The invalid fields. */
export interface FieldProblems {
  isUrlBad: boolean;
  isContextBad: boolean;
  /** By the index of the header. */
  headers: ReadonlyMap<number, "name" | "value">;
  /** `no_object`, or the message of the JSON parser. */
  extraBody: string | undefined;
}

/** Returns the form of a saved connection, or an empty one. */
export function toConnectionFields(connection: Connection | undefined): ConnectionFields {
  const { extra_body } = connection ?? {};
  return {
    name: connection?.name ?? "",
    kind: connection?.kind ?? "openai",
    baseUrl: connection?.base_url ?? "",
    apiKey: "",
    model: connection?.model ?? "",
    contextSize: connection?.context_size ? String(connection.context_size) : "",
    server: connection?.server?.override ?? "",
    headers: (connection?.header_names ?? []).map((name) => ({ name, value: "", isStored: true })),
    extraBody: extra_body === undefined ? "" : JSON.stringify(extra_body, null, 2),
    background: connection?.background ?? false,
  };
}

/** A token of RFC 9110, section 5.6.2. */
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** Checks what the page can check; the server decides. @param stored The connection as saved. */
export function findProblems(fields: ConnectionFields, stored?: Connection): FieldProblems {
  const size = fields.contextSize.trim();
  const hasMoved = areHeadersLeftBehind(fields, stored);
  const headers = new Map<number, "name" | "value">();
  fields.headers.forEach(({ name, value, isStored }, index) => {
    if (!HEADER_NAME.test(name.trim())) headers.set(index, "name");
    else if (/[\r\n]/.test(value) || (value.trim() === "" && (!isStored || hasMoved))) headers.set(index, "value");
  });
  return {
    isUrlBad: parseOrigin(fields.baseUrl) === undefined,
    isContextBad: size !== "" && !/^[1-9]\d{0,8}$/.test(size),
    headers,
    extraBody: findBodyProblem(fields.extraBody),
  };
}

/** Returns whether a form can be saved. */
export function isValid({ isUrlBad, isContextBad, headers, extraBody }: FieldProblems): boolean {
  return !isUrlBad && !isContextBad && headers.size === 0 && extraBody === undefined;
}

/** Returns whether stored header values are lost: they belong to the exact origin they were entered for. */
export function areHeadersLeftBehind(fields: ConnectionFields, stored: Connection | undefined): boolean {
  return (stored?.header_names?.length ?? 0) > 0 && parseOrigin(fields.baseUrl) !== parseOrigin(stored!.base_url);
}

/** Validates an extra body. Returns `no_object` or the message of the JSON parser. Empty text means no extra body. */
export function findBodyProblem(text: string): string | undefined {
  if (text.trim() === "") return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? undefined : "no_object";
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}

/** Returns the API input. An empty name becomes the host. @param stored The connection as saved. */
export function toConnectionInput(fields: ConnectionFields, stored: Connection | undefined): ConnectionInput {
  const size = fields.contextSize.trim();
  const baseUrl = completeScheme(fields.baseUrl);
  const input: ConnectionInput = {
    name: fields.name.trim() || parseHost(baseUrl),
    kind: fields.kind,
    base_url: fields.kind === "ollama" ? stripVersion(baseUrl) : baseUrl,
    model: fields.model.trim() || null,
    context_size: size === "" ? null : Number(size),
  };
  if (stored !== undefined) input.id = stored.id;
  // Pasted keys often have a space or line break around them.
  const key = fields.apiKey.trim();
  if (key !== "") input.api_key = key;
  if (fields.server !== (stored?.server?.override ?? "")) input.server = { override: fields.server || null };
  const headers = listHeaderChanges(fields.headers, stored?.header_names ?? []);
  if (Object.keys(headers).length > 0) input.headers = headers;
  if (fields.extraBody.trim() !== "") input.extra_body = JSON.parse(fields.extraBody);
  else if (stored?.extra_body !== undefined) input.extra_body = null;
  if (fields.background !== (stored?.background ?? false)) input.background = fields.background;
  return input;
}

/** Returns the root of an Ollama server, where its own API is, from the address of its OpenAI-compatible one. */
export function stripVersion(baseUrl: string): string {
  return baseUrl.replace(/\/v1\/?$/, "");
}

/** A typed value replaces; a stored header that is no longer in the form is removed. */
function listHeaderChanges(fields: readonly HeaderField[], stored: readonly string[]): Record<string, string | null> {
  const names = new Set(fields.map(({ name }) => name.trim().toLowerCase()));
  const removed = stored.filter((name) => !names.has(name.toLowerCase())).map((name) => [name, null] as const);
  const typed = fields.filter(({ value }) => value.trim() !== "")
    .map(({ name, value }) => [name.trim(), value.trim()] as const);
  return Object.fromEntries([...removed, ...typed]);
}

function parseHost(text: string): string {
  try {
    return new URL(text.trim()).host;
  } catch {
    return text.trim();
  }
}
