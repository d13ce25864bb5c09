/** The form of a connection and its conversion to the API. */
import type { Connection, ConnectionInput, ConnectionKind } from "../../api/types.ts";
import { parseOrigin } from "../../components/forms/api_key_state.ts";

/** The form as typed. */
export interface ConnectionFields {
  name: string;
  kind: ConnectionKind;
  baseUrl: string;
  /** Empty keeps a stored key. */
  apiKey: string;
  model: string;
  contextSize: string;
}

/** The invalid fields. */
export interface FieldProblems {
  isUrlBad: boolean;
  isContextBad: boolean;
}

/** Returns the form of a saved connection, or an empty one. */
export function toConnectionFields(connection: Connection | undefined): ConnectionFields {
  return {
    name: connection?.name ?? "",
    kind: connection?.kind ?? "openai",
    baseUrl: connection?.base_url ?? "",
    apiKey: "",
    model: connection?.model ?? "",
    contextSize: connection?.context_size ? String(connection.context_size) : "",
  };
}

/** Checks what the page can check; the server decides. */
export function findProblems(fields: ConnectionFields): FieldProblems {
  const size = fields.contextSize.trim();
  return {
    isUrlBad: parseOrigin(fields.baseUrl) === undefined,
    isContextBad: size !== "" && !/^[1-9]\d{0,8}$/.test(size),
  };
}

/** Returns the API input. An empty name becomes the host. */
export function toConnectionInput(fields: ConnectionFields, id: string | undefined): ConnectionInput {
  const size = fields.contextSize.trim();
  const input: ConnectionInput = {
    name: fields.name.trim() || parseHost(fields.baseUrl),
    kind: fields.kind,
    base_url: fields.baseUrl.trim(),
    model: fields.model.trim() || null,
    context_size: size === "" ? null : Number(size),
  };
  if (id !== undefined) input.id = id;
  // Pasted keys often have a space or line break around them.
  const key = fields.apiKey.trim();
  if (key !== "") input.api_key = key;
  return input;
}

function parseHost(text: string): string {
  try {
    return new URL(text.trim()).host;
  } catch {
    return text.trim();
  }
}
