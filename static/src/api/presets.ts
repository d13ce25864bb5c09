/** Presets on the wire, as the page uses them, and the calls about them. */
import type { ApiClient } from "./client.ts";
import { type DocumentApi, documentApi } from "./documents.ts";

/** A preset without its prompts. */
export interface PresetItem {
  id: string;
  name: string;
  /** Names of models, in which `*` stands for any characters. */
  models: string[];
  /** It is always there and cannot be changed. */
  builtin: boolean;
  prompt_count: number;
  updated_at: string;
  /** Set where it cannot be opened. */
  error?: { code: string };
}

/** One prompt, as SillyTavern writes it; unknown fields stay. */
export interface PresetPrompt {
  identifier: string;
  name?: string;
  role?: string;
  content?: string;
  /** A part of the chat goes there. */
  marker?: boolean;
  /** 1: among the messages. */
  injection_position?: number;
  /** Messages that stand behind it. */
  injection_depth?: number;
  injection_order?: number;
  /** A card's own prompt does not take its place. */
  forbid_overrides?: boolean;
  [field: string]: unknown;
}

/** A prompt's place in the order. */
export interface PresetPlace {
  identifier: string;
  enabled: boolean;
  [field: string]: unknown;
}

/** One order of prompts. */
export interface PresetOrder {
  character_id?: number | string;
  order: PresetPlace[];
  [field: string]: unknown;
}

/** A whole preset. */
export interface Preset extends PresetItem {
  sampler: Record<string, number>;
  prompts: PresetPrompt[];
  prompt_order: PresetOrder[];
  rest: Record<string, unknown>;
  dialect: "chat_completion" | "text_completion";
}

/** What a person changes in a preset. */
export type PresetFields = Pick<
  Preset,
  "name" | "models" | "sampler" | "prompts" | "prompt_order" | "rest" | "dialect"
>;

/** Id of the built-in preset. */
export const BUILTIN_PRESET_ID = "default";

/** Calls about presets. */
export type PresetApi = DocumentApi<PresetItem, Preset>;

/** Binds the calls to one client. */
export function presetApi(client: ApiClient): PresetApi {
  return documentApi<PresetItem, Preset>(client, "/api/presets");
}
