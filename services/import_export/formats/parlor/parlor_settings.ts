/** Reads servers and settings of an export, ignoring fields of the wrong type. */
import { ATTACHMENT_URL } from "../../../attachments/attachment_rows.ts";
import { BACKEND_KINDS, type ImageSettings } from "../../../image_generation/backend_profiles.ts";
import type { CallTimeouts } from "../../../http/upstream_error.ts";
import { parseDialectName } from "../../../llm/dialects/dialects.ts";
import { PROVIDER_KINDS } from "../../../llm/provider.ts";
import { AppError } from "../../../errors.ts";
import { SERVER_TRANSPORTS } from "../../../mcp/tool_server.ts";
import { BOOK_ORDERS } from "../../../lorebooks/activation_rules.ts";
import { isId } from "../../../storage/ids.ts";
import {
  asArray,
  asNumber,
  asObject,
  asTexts,
  getOwn,
  isJsonObject,
  type JsonObject,
} from "../../../json/type_guards.ts";
import { parseTemplates } from "../../../settings/prompt_templates.ts";
import { DEFAULT_SETTINGS, type SettingsPatch } from "../../../settings/settings.ts";
import { NOTIFY_KINDS } from "../../../push/notify_server.ts";
import { AUDIO_FORMATS } from "../../../speech/audio_format.ts";
import type {
  ImportedConnection,
  ImportedImageConnection,
  ImportedSettings,
  ImportedToolServer,
} from "../../import_item.ts";

interface Origin {
  id: string;
  source: string;
  name: string;
  createdAtMs?: number;
}

const TIMEOUTS: (keyof CallTimeouts)[] = ["connectMs", "firstByteMs", "idleMs"];
const DRAW_TEXTS = ["negativePrompt", "sampler", "scheduler"];
const DRAW_NUMBERS = ["widthPx", "heightPx", "steps", "cfgScale", "seed"];
const MAX_TEXT = 300;
/** Allowed values of settings, in addition to their type. */
const RULES: Record<string, (value: unknown) => boolean> = {
  theme: (value) => ["system", "light", "dark"].includes(value as string),
  portrait_size: (value) => ["small", "medium", "large"].includes(value as string),
  message_style: (value) => ["plain", "bubbles"].includes(value as string),
  font_size: isIntegerIn(85, 140),
  memory_budget_percent: isIntegerIn(0, 50),
  memory_idle_minutes: isIntegerIn(1, 10_080),
  lore_budget_percent: isIntegerIn(0, 100),
  lore_budget_tokens: isIntegerIn(1, 10_000_000),
  lore_min_activations: isIntegerIn(0, 1_000),
  lore_min_activations_depth: isIntegerIn(1, 1_000),
  lore_max_recursion: isIntegerIn(0, 100),
  lore_order: (value) => BOOK_ORDERS.some((order) => order === value),
  accent_hue: (value) => typeof value === "number" && value >= 0 && value <= 360,
  default_persona_id: (value) => isId(pickText(value)),
  preset_id: (value) => isId(pickText(value)),
  prompt_templates: (value) => parseTemplates(value) !== undefined,
  chat_background: (value) => ATTACHMENT_URL.test(pickText(value)),
  language: (value) => /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/.test(pickText(value)),
};
function isIntegerIn(least: number, most: number): (value: unknown) => boolean {
  return (value) => Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}

const SPEED = { least: 0.25, most: 4 };

/** Reads a connection. @throws {AppError} `unprocessable` */
export function parseExportedConnection(json: JsonObject, origin: Origin): ImportedConnection {
  const kind = PROVIDER_KINDS.find((one) => one === json.kind && one !== "demo");
  if (kind === undefined) throw new AppError("unprocessable", "unknown kind");
  const timeouts = Object.fromEntries(pickNumbers(json.timeouts, TIMEOUTS).filter(([, value]) => value > 0));
  const contextSize = asNumber(json.contextSize);
  return {
    what: "connection",
    ...origin,
    hadKey: json.hasKey === true,
    isActive: json.isActive === true,
    profile: {
      name: origin.name,
      kind,
      baseUrl: pickText(json.baseUrl),
      model: pickText(json.model) || undefined,
      timeouts,
      ...(contextSize !== undefined && contextSize > 0 && { contextSize }),
      ...(isJsonObject(json.extraBody) && { extraBody: json.extraBody }),
      ...(json.background === true && { background: true }),
      serverOverride: parseDialectName(json.serverOverride),
    },
  };
}

/** Reads an image connection. @throws {AppError} `unprocessable` */
export function parseImageConnection(json: JsonObject, origin: Origin): ImportedImageConnection {
  const kind = BACKEND_KINDS.find((one) => one === json.kind);
  if (kind === undefined) throw new AppError("unprocessable", "unknown kind");
  const input = asObject(json.defaults);
  const texts = DRAW_TEXTS.flatMap((name) => typeof input[name] === "string" ? [[name, input[name]]] : []);
  const defaults: ImageSettings = Object.fromEntries([...texts, ...pickNumbers(input, DRAW_NUMBERS)]);
  return {
    what: "image_connection",
    ...origin,
    hadKey: json.hasKey === true,
    isActive: json.isActive === true,
    profile: {
      name: origin.name,
      kind,
      baseUrl: pickText(json.baseUrl),
      defaults,
      checkpoint: pickText(json.checkpoint) || undefined,
      workflowId: pickText(json.workflowId) || undefined,
    },
  };
}

/** Reads a tool server. @throws {AppError} `unprocessable` */
export function parseExportedToolServer(json: JsonObject, origin: Origin): ImportedToolServer {
  const transport = SERVER_TRANSPORTS.find((one) => one === json.transport);
  if (transport === undefined) throw new AppError("unprocessable", "unknown transport");
  const secrets = [...asTexts(json.envNames), ...asTexts(json.headerNames)];
  return {
    what: "tool_server",
    ...origin,
    hadSecrets: secrets.length > 0 || json.hasClientSecret === true,
    server: {
      name: origin.name,
      transport,
      isEnabled: json.isEnabled === true,
      ...(transport === "stdio"
        ? { command: pickText(json.command), args: asArray(json.args).map(String) }
        : { url: pickText(json.url), clientId: pickText(json.clientId) || undefined }),
    },
  };
}

/** Returns the settings that have a valid value. */
export function pickSettings(input: JsonObject): SettingsPatch {
  const settings = Object.entries(DEFAULT_SETTINGS).flatMap(([name, standard]) => {
    const value = input[name];
    const isOfKind = standard === null || typeof value === typeof standard;
    const isShort = typeof value !== "string" || value.length <= MAX_TEXT;
    const rule = getOwn(RULES, name) ?? ((value) => standard !== null || typeof value === "string");
    return value !== null && value !== undefined && isOfKind && isShort && rule(value)
      ? [[name, name === "prompt_templates" ? parseTemplates(value) : value]]
      : [];
  });
  return Object.fromEntries(settings) as SettingsPatch;
}

/** Reads settings without unknown fields or wrong types. */
export function parseSettings(json: JsonObject, source: string): ImportedSettings {
  const { baseUrl, model, voice, format, speed, hasKey } = asObject(json.speech);
  const transcription = asObject(json.transcription);
  const [web, notifications] = [asObject(json.web), asObject(json.notifications)];
  const notifyKind = NOTIFY_KINDS.find((one) => one === notifications.kind);
  const times = asNumber(speed);
  const isSpeed = times !== undefined && times >= SPEED.least && times <= SPEED.most;
  return {
    what: "settings",
    id: "settings",
    source,
    name: "settings",
    settings: pickSettings(asObject(json.settings)),
    hadSpeechKey: hasKey === true,
    ...(pickText(baseUrl) !== "" && {
      speech: {
        baseUrl: pickText(baseUrl),
        model: pickText(model),
        voice: pickText(voice),
        format: AUDIO_FORMATS.find((one) => one === format),
        speed: isSpeed ? times : undefined,
      },
    }),
    hadTranscriptionKey: transcription.hasKey === true,
    ...(pickText(transcription.baseUrl) !== "" && {
      transcription: {
        baseUrl: pickText(transcription.baseUrl),
        model: pickText(transcription.model),
        language: pickText(transcription.language),
      },
    }),
    ...((pickText(web.searchUrl) !== "" || typeof web.readPage === "boolean" || typeof web.search === "boolean") && {
      web: { searchUrl: pickText(web.searchUrl), search: asBoolean(web.search), readPage: asBoolean(web.readPage) },
    }),
    ...(notifyKind !== undefined && pickText(notifications.url) !== "" && {
      notifications: { kind: notifyKind, url: pickText(notifications.url) },
    }),
  };
}

function asBoolean(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

function pickText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function pickNumbers(value: unknown, names: readonly string[]): [string, number][] {
  const object = asObject(value);
  return names.flatMap((name): [string, number][] => {
    const number = object[name];
    return typeof number === "number" && Number.isFinite(number) ? [[name, number]] : [];
  });
}
