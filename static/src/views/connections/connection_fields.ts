/** What stands in the form of a connection, and what becomes of it on the wire. */
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

/** Which fields cannot be sent as they are. */
export interface FieldProblems {
  isUrlBad: boolean;
  isContextBad: boolean;
}

/** Gives the form of a saved connection, or an empty one. */
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

/** Checks what can be checked here; the server has the last word. */
export function findProblems(fields: ConnectionFields): FieldProblems {
  const size = fields.contextSize.trim();
  return {
    isUrlBad: parseOrigin(fields.baseUrl) === undefined,
    isContextBad: size !== "" && !/^[1-9]\d{0,8}$/.test(size),
  };
}

/** Gives what is sent. A name left empty is the host's. */
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
  // Keys are pasted, often with the space or the line end around them.
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
