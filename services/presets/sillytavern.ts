/** Converts between SillyTavern's preset files and Parlor's presets. */
import { Buffer } from "node:buffer";
import { AppError } from "../errors.ts";
import {
  asArray,
  asNumber,
  asObject,
  findJsonFault,
  isJsonObject,
  type JsonObject,
  parseJsonBytes,
} from "../json/type_guards.ts";
import type { PresetDialect, PresetDocument, PresetOrder, PresetPrompt, Sampler } from "./preset.ts";

/** Sampler names in files, by Parlor's names. */
const NAMES: Record<PresetDialect, Record<string, string>> = {
  chat_completion: {
    temperature: "temperature",
    top_p: "top_p",
    top_k: "top_k",
    top_a: "top_a",
    min_p: "min_p",
    seed: "seed",
    frequency_penalty: "frequency_penalty",
    presence_penalty: "presence_penalty",
    repetition_penalty: "repetition_penalty",
    max_tokens: "openai_max_tokens",
    context_size: "openai_max_context",
  },
  text_completion: {
    temperature: "temp",
    top_p: "top_p",
    top_k: "top_k",
    top_a: "top_a",
    min_p: "min_p",
    seed: "seed",
    typical_p: "typical_p",
    frequency_penalty: "freq_pen",
    presence_penalty: "presence_pen",
    repetition_penalty: "rep_pen",
    repeat_last_n: "rep_pen_range",
    max_tokens: "genamt",
    context_size: "max_length",
    mirostat: "mirostat_mode",
    mirostat_tau: "mirostat_tau",
    mirostat_eta: "mirostat_eta",
    dry_multiplier: "dry_multiplier",
    dry_base: "dry_base",
    dry_allowed_length: "dry_allowed_length",
    dry_penalty_last_n: "dry_penalty_last_n",
    xtc_probability: "xtc_probability",
    xtc_threshold: "xtc_threshold",
    tfs_z: "tfs",
  },
};

/** Maximum JSON size of a preset, in bytes. Some contain whole prompt libraries. */
export const MAX_PRESET_BYTES = 5 * 1024 * 1024;
const MAX_PROMPTS = 2_000;
const MAX_ORDERS = 1_000;

/**
 * Parses a preset file.
 *
 * @throws {AppError} `too_large`; `unprocessable` if it isn't JSON or has neither sampler parameters nor prompts
 */
export function parsePresetFile(bytes: Uint8Array): { preset: PresetDocument; name?: string } {
  if (bytes.length > MAX_PRESET_BYTES) throw createTooLargeError();
  let json: unknown;
  try {
    json = parseJsonBytes(bytes);
  } catch (cause) {
    throw new AppError("unprocessable", "Can't read the preset: the file isn't valid JSON in UTF-8", { cause });
  }
  const preset = parseSillyTavernPreset(json);
  const { name } = json as JsonObject;
  return { preset, ...(typeof name === "string" && name.trim() !== "" && { name: name.trim() }) };
}

const DOCUMENT_FIELDS = ["sampler", "prompts", "prompt_order", "rest", "extra_body", "dialect"];
const BODY_FIELDS = ["name", "models", ...DOCUMENT_FIELDS];

/**
 * Returns what a request wants to save: the known fields of its body, which the API checks.
 *
 * @throws {AppError} `too_large`; `unprocessable` for a value that can't be stored
 */
export function readPresetBody(json: JsonObject): JsonObject {
  const pick = (fields: string[]) =>
    Object.fromEntries(fields.flatMap((field) => Object.hasOwn(json, field) ? [[field, json[field]]] : []));
  const preset = pick(DOCUMENT_FIELDS);
  const fault = findJsonFault(preset);
  if (fault !== undefined) throw new AppError("unprocessable", `Can't save the preset: ${fault}`);
  if (Buffer.byteLength(JSON.stringify(preset)) > MAX_PRESET_BYTES) throw createTooLargeError();
  return pick(BODY_FIELDS);
}

/** Creates the error for a preset that is too large. */
export function createTooLargeError(): AppError {
  return new AppError("too_large", `The preset is larger than ${MAX_PRESET_BYTES} bytes`);
}

/** Checks a preset that a child of the sandbox has read. */
export function parseReadPreset(json: JsonObject): PresetDocument {
  const { sampler, prompts, prompt_order, rest, extra_body, dialect } = json;
  const numbers = Object.entries(asObject(sampler)).filter(([, value]) => typeof value === "number");
  return {
    sampler: Object.fromEntries(numbers) as Sampler,
    prompts: asArray(prompts).filter(isPrompt).slice(0, MAX_PROMPTS),
    prompt_order: asArray(prompt_order).filter(isOrder).slice(0, MAX_ORDERS),
    rest: asObject(rest),
    dialect: dialect === "text_completion" ? dialect : "chat_completion",
    ...(isJsonObject(extra_body) && { extra_body }),
  };
}

/** Parses the JSON of a preset file. @throws {AppError} `unprocessable` */
export function parseSillyTavernPreset(json: unknown): PresetDocument {
  const fault = findJsonFault(json);
  if (fault !== undefined) throw createUnreadableError(fault);
  if (!isJsonObject(json)) throw createUnreadableError("it isn't a JSON object");
  const isChat = "prompts" in json || "prompt_order" in json || "openai_max_tokens" in json || "temperature" in json;
  const dialect = isChat ? "chat_completion" : "text_completion";
  const sampler: Sampler = {};
  const rest: JsonObject = { ...json };
  for (const [ours, theirs] of Object.entries(NAMES[dialect])) {
    const value = json[theirs];
    // Values that aren't numbers stay in `rest`.
    if (typeof value !== "number") continue;
    sampler[ours] = value;
    delete rest[theirs];
  }
  const { prompts, isTaken: hasPrompts } = parsePrompts(json.prompts);
  const { orders, isTaken: hasOrders } = parseOrders(json.prompt_order);
  if (hasPrompts) delete rest.prompts;
  if (hasOrders) delete rest.prompt_order;
  const extraBody = isJsonObject(json.extra_body) ? json.extra_body : undefined;
  if (extraBody !== undefined) delete rest.extra_body;
  if (Object.keys(sampler).length === 0 && prompts.length === 0) {
    throw createUnreadableError("it has neither samplers nor prompts");
  }
  return { sampler, prompts, prompt_order: orders, rest, dialect, ...(extraBody && { extra_body: extraBody }) };
}

/** Converts a preset to a file. Its own fields take precedence over those of the imported file. */
export function toSillyTavernPreset(preset: PresetDocument): JsonObject {
  const { sampler, prompts, prompt_order, rest, extra_body, dialect } = preset;
  const isWhole = prompts.length > 0 || prompt_order.length > 0;
  const names = NAMES[isWhole ? "chat_completion" : dialect];
  const samplers = Object.entries(sampler).filter(([, value]) => value !== undefined);
  return {
    ...rest,
    ...Object.fromEntries(samplers.map(([ours, value]) => [names[ours] ?? ours, value])),
    ...(prompts.length > 0 && { prompts }),
    ...(prompt_order.length > 0 && { prompt_order }),
    ...(extra_body && { extra_body }),
  };
}

/** Parses the list of prompts. A list that doesn't consist of prompts stays in `rest`, so that nothing is lost. */
function parsePrompts(value: unknown): { prompts: PresetPrompt[]; isTaken: boolean } {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isPrompt)) return { prompts: [], isTaken: false };
  if (value.length > MAX_PROMPTS) throw createUnreadableError(`it has more than ${MAX_PROMPTS} prompts`);
  return { prompts: value, isTaken: true };
}

function parseOrders(value: unknown): { orders: PresetOrder[]; isTaken: boolean } {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isOrder)) return { orders: [], isTaken: false };
  if (value.length > MAX_ORDERS) throw createUnreadableError(`it has more than ${MAX_ORDERS} orders of prompts`);
  return { orders: value, isTaken: true };
}

function isPrompt(value: unknown): value is PresetPrompt {
  return isJsonObject(value) && typeof value.identifier === "string";
}

function isOrder(value: unknown): value is PresetOrder {
  return isJsonObject(value) && Array.isArray(value.order) &&
    value.order.every((item) =>
      isJsonObject(item) && typeof item.identifier === "string" && typeof item.enabled === "boolean"
    );
}

/** Reports whether a value has no effect. Servers may reject unknown parameters. */
export function isNeutral(name: string, value: number): boolean {
  const neutral = asNumber(NEUTRAL[name]);
  return name === "seed" ? value < 0 : neutral !== undefined && value === neutral;
}

const NEUTRAL: Record<string, number> = {
  top_p: 1,
  top_k: 0,
  top_a: 0,
  min_p: 0,
  typical_p: 1,
  tfs_z: 1,
  frequency_penalty: 0,
  presence_penalty: 0,
  repetition_penalty: 1,
  mirostat: 0,
  dry_multiplier: 0,
  xtc_probability: 0,
};

function createUnreadableError(found: string): AppError {
  return new AppError("unprocessable", `Can't read the preset: ${found}`);
}
