/** Reads servers and settings of an export, ignoring fields of the wrong type. */
import { BACKEND_KINDS, type ImageSettings } from "../../../image_generation/backend_profiles.ts";
import type { CallTimeouts } from "../../../http/timeouts.ts";
import { PROVIDER_KINDS } from "../../../llm/provider.ts";
import { AppError } from "../../../errors.ts";
import { isId } from "../../../storage/ids.ts";
import { asNumber, asObject, type JsonObject } from "../../../json/type_guards.ts";
import { DEFAULT_SETTINGS, type SettingsPatch } from "../../../settings/settings.ts";
import { AUDIO_FORMATS } from "../../../speech/audio_format.ts";
import type { ImportedConnection, ImportedImageConnection, ImportedSettings } from "../../import_item.ts";

interface Origin {
  id: string;
  source: string;
  name: string;
}

const TIMEOUTS: (keyof CallTimeouts)[] = ["connectMs", "firstByteMs", "idleMs"];
const DRAW_TEXTS = ["negativePrompt", "sampler", "scheduler"];
const DRAW_NUMBERS = ["widthPx", "heightPx", "steps", "cfgScale", "seed"];
const MAX_TEXT = 300;
/** Allowed values of settings, in addition to their type. */
const RULES: Record<string, (value: unknown) => boolean> = {
  theme: (value) => ["system", "light", "dark"].includes(value as string),
  font_size: (value) => Number.isInteger(value) && (value as number) >= 85 && (value as number) <= 140,
  accent_hue: (value) => typeof value === "number" && value >= 0 && value <= 360,
  default_persona_id: (value) => isId(textIn(value)),
  preset_id: (value) => isId(textIn(value)),
  language: (value) => /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/.test(textIn(value)),
};
const SPEED = { least: 0.25, most: 4 };

/** Reads a connection. @throws {AppError} `unprocessable` */
export function connectionOf(json: JsonObject, origin: Origin): ImportedConnection {
  const kind = PROVIDER_KINDS.find((one) => one === json.kind && one !== "demo");
  if (kind === undefined) throw new AppError("unprocessable", "unknown kind");
  const timeouts = Object.fromEntries(numbersIn(json.timeouts, TIMEOUTS).filter(([, value]) => value > 0));
  const contextSize = asNumber(json.contextSize);
  return {
    what: "connection",
    ...origin,
    hadKey: json.hasKey === true,
    isActive: json.isActive === true,
    profile: {
      name: origin.name,
      kind,
      baseUrl: textIn(json.baseUrl),
      model: textIn(json.model) || undefined,
      timeouts,
      ...(contextSize !== undefined && contextSize > 0 && { contextSize }),
    },
  };
}

/** Reads an image connection. @throws {AppError} `unprocessable` */
export function imageConnectionOf(json: JsonObject, origin: Origin): ImportedImageConnection {
  const kind = BACKEND_KINDS.find((one) => one === json.kind);
  if (kind === undefined) throw new AppError("unprocessable", "unknown kind");
  const given = asObject(json.defaults);
  const texts = DRAW_TEXTS.flatMap((name) => typeof given[name] === "string" ? [[name, given[name]]] : []);
  const defaults: ImageSettings = Object.fromEntries([...texts, ...numbersIn(given, DRAW_NUMBERS)]);
  return {
    what: "image_connection",
    ...origin,
    hadKey: json.hasKey === true,
    isActive: json.isActive === true,
    profile: {
      name: origin.name,
      kind,
      baseUrl: textIn(json.baseUrl),
      defaults,
      checkpoint: textIn(json.checkpoint) || undefined,
      workflowId: textIn(json.workflowId) || undefined,
    },
  };
}

/** Reads settings without unknown fields or wrong types. */
export function settingsOf(json: JsonObject, source: string): ImportedSettings {
  const given = asObject(json.settings);
  const settings = Object.entries(DEFAULT_SETTINGS).flatMap(([name, standard]) => {
    const value = given[name];
    const isOfKind = standard === null || typeof value === typeof standard;
    const isShort = typeof value !== "string" || value.length <= MAX_TEXT;
    const rule = RULES[name] ?? ((value) => standard !== null || typeof value === "string");
    return value !== null && value !== undefined && isOfKind && isShort && rule(value) ? [[name, value]] : [];
  });
  const { baseUrl, model, voice, format, speed, hasKey } = asObject(json.speech);
  const times = asNumber(speed);
  const isSpeed = times !== undefined && times >= SPEED.least && times <= SPEED.most;
  return {
    what: "settings",
    id: "settings",
    source,
    name: "settings",
    settings: Object.fromEntries(settings) as SettingsPatch,
    hadSpeechKey: hasKey === true,
    ...(textIn(baseUrl) !== "" && {
      speech: {
        baseUrl: textIn(baseUrl),
        model: textIn(model),
        voice: textIn(voice),
        format: AUDIO_FORMATS.find((one) => one === format),
        speed: isSpeed ? times : undefined,
      },
    }),
  };
}

function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function numbersIn(value: unknown, names: readonly string[]): [string, number][] {
  const given = asObject(value);
  return names.flatMap((name): [string, number][] => {
    const number = given[name];
    return typeof number === "number" && Number.isFinite(number) ? [[name, number]] : [];
  });
}
