/** Sends a request again without the fields that the server refuses, and remembers them. */
import { UpstreamError } from "../../http/upstream_error.ts";
import type { ModelCall } from "../model_call.ts";
import type { LeftOutField, SentFacts } from "../provider.ts";
import { findRefusedFields, isLimitName, type RefusedField } from "./refused_fields.ts";

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
