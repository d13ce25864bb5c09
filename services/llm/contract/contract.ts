/** What one server was found to do with one model, compared with what the table of dialects says of its kind. */
import { isJsonObject, type JsonObject } from "../../json/type_guards.ts";
import { COMMON_IMAGE_TYPES, CONTINUE_LAST_MESSAGE, type Dialect, SHOW_PROGRESS } from "../dialects/dialect.ts";

/** What a probe asks, in the order in which it's shown. */
export const CONTRACT_ITEMS = [
  "context_size",
  "slots",
  "continues",
  "repeats_prefill",
  "progress",
  "cancels",
  "system_message",
  "tools",
  "images",
  "stop",
  "usage",
  "resumable",
] as const;

/** One of the items. */
export type ContractItem = (typeof CONTRACT_ITEMS)[number];

/** Why an item is unknown. */
export const NOT_ASKED = [
  /** A slot of the server is busy. */
  "busy",
  /** Asking would replace the prefix of a chat in the server's cache, or the server doesn't tell. */
  "holds_chat",
  /** Asking could load a model. */
  "would_load",
  /** The probe's time was over. */
  "time",
  /** The server answered in a way that says nothing about it. */
  "unclear",
] as const;

/** One of the reasons. */
export type NotAsked = (typeof NOT_ASKED)[number];

/** What was found. `context_size` and `slots` are numbers. */
export interface Finding {
  /** Absent if it isn't known. */
  found?: boolean | number;
  /** What the table says, if it says something. */
  expected?: boolean;
  /** Why it isn't known. */
  reason?: NotAsked;
}

/** What a server was found to do with a model. */
export interface ServerContract {
  atMs: number;
  /** Changes with the server's version, its context, and other options it was started with. */
  fingerprint: string;
  /** As the server names it: `"b11434"`. */
  version?: string;
  findings: Partial<Record<ContractItem, Finding>>;
  /** Whether a repeated prefill is continued exactly if the request has `CONTINUE_LAST_MESSAGE`. */
  isExactWithFields?: boolean;
}

/** Returns what the table says of an item. */
export function getExpected(dialect: Dialect, item: ContractItem): boolean | undefined {
  switch (item) {
    case "continues":
      return dialect.continues;
    case "repeats_prefill":
      return dialect.continuationFields === undefined ? undefined : false;
    case "progress":
      return dialect.progressFields !== undefined;
    case "tools":
      return dialect.tools;
    case "images":
      return dialect.imageTypes.length > 0;
    case "resumable":
      return dialect.keepsStreams;
    case "system_message":
    case "stop":
    case "usage":
    case "cancels":
      return true;
    default:
      return undefined;
  }
}

/** Reports whether a server does something else than the table says. */
export function isDifferent({ found, expected }: Finding): boolean {
  return found !== undefined && expected !== undefined && found !== expected;
}

/** Returns the dialect of one server and model: the table's, changed by what was found. */
export function applyContract(dialect: Dialect, contract: ServerContract | undefined): Dialect {
  if (contract === undefined) return dialect;
  const is = (item: ContractItem) => contract.findings[item]?.found;
  const applied: Dialect = { ...dialect };
  if (is("continues") === false) applied.continues = false;
  if (contract.isExactWithFields) applied.continuationFields = CONTINUE_LAST_MESSAGE;
  if (is("progress") === true) applied.progressFields ??= SHOW_PROGRESS;
  if (is("progress") === false) delete applied.progressFields;
  if (is("tools") === false) applied.tools = false;
  if (is("images") === false) applied.imageTypes = [];
  if (is("images") === true && dialect.imageTypes.length === 0) applied.imageTypes = COMMON_IMAGE_TYPES;
  if (is("resumable") !== undefined) applied.keepsStreams = is("resumable") === true;
  if (is("system_message") === false) applied.hasSystemMessages = false;
  return applied;
}

/**
 * Returns a newer contract with what an older one knows besides. Nothing is kept of a server that has changed.
 *
 * @param older From a server with any fingerprint.
 */
export function mergeContracts(older: ServerContract | undefined, newer: ServerContract): ServerContract {
  if (older?.fingerprint !== newer.fingerprint) return newer;
  const findings: ServerContract["findings"] = { ...newer.findings };
  for (const item of CONTRACT_ITEMS) {
    const known = older.findings[item];
    if (known?.found !== undefined && findings[item]?.found === undefined) findings[item] = known;
  }
  const { isExactWithFields = older.isExactWithFields } = newer;
  return { ...newer, findings, ...(isExactWithFields && { isExactWithFields }) };
}

/** Reports whether asking again may find more. */
export function isIncomplete({ findings }: ServerContract): boolean {
  return Object.values(findings).some(({ reason }) => reason === "busy" || reason === "time");
}

/** Reads stored contracts by model. Those of another format are dropped: they're found again. */
export function parseContracts(stored: unknown): Record<string, ServerContract> | undefined {
  if (!isJsonObject(stored)) return undefined;
  return Object.fromEntries(
    Object.entries(stored).filter((entry): entry is [string, JsonObject & ServerContract] => {
      const contract = entry[1];
      return isJsonObject(contract) && typeof contract.fingerprint === "string" && isJsonObject(contract.findings);
    }),
  );
}
