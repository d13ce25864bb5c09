/** The calls about presets. */
import type { Preset, PresetItem } from "./types.ts";
import type { ApiClient } from "./client.ts";
import { type DocumentApi, documentApi } from "./documents.ts";

/** The fields of a preset that the editor changes. */
export type PresetDraft =
  & Pick<Preset, "name" | "models" | "sampler" | "prompts" | "prompt_order" | "rest" | "dialect">
  & { extra_body?: Preset["extra_body"] | null };

/** Id of the built-in preset. */
export const BUILTIN_PRESET_ID = "default";

/** Calls about presets. */
export type PresetApi = DocumentApi<PresetItem, Preset>;

/** Binds the calls to one client. */
export function presetApi(client: ApiClient): PresetApi {
  return documentApi<PresetItem, Preset>(client, "/api/presets");
}
