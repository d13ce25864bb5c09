/** The page of the real SillyTavern in a browser. */
import type { Browser, Page } from "playwright-core";
import type { SillyTavern } from "./silly_tavern.ts";

/** Time limit for a busy machine. */
const READY_MS = 180_000;

/** Parts of settings.json besides those of a user who chats as Ann. */
export interface TavernSettings {
  /** Personas by image file. */
  personas?: Record<string, { name: string; description: Record<string, unknown> }>;
  /** Further World Info of characters, by card file without `.png`. */
  charLore?: { name: string; extraBooks: string[] }[];
  /** World Info that is switched on for all chats. */
  globalSelect?: string[];
  tags?: { id: string; name: string }[];
  /** IDs of tags by card file. */
  tag_map?: Record<string, string[]>;
  /** Author's notes of characters, by card file without `.png`. */
  notes?: { name: string; prompt: string; useChara: boolean; position: number }[];
  /** Lists of logit bias by name. */
  biases?: Record<string, unknown[]>;
}

/** Writes the settings of a user who chats as Ann over chat completion. @param url Base URL of the model server. */
export async function writeTavernSettings(
  tavern: SillyTavern,
  url: string,
  { personas = {}, charLore = [], globalSelect = [], tags = [], tag_map = {}, notes = [], biases = {} }:
    TavernSettings = {},
): Promise<void> {
  const further = Object.entries(personas);
  const { settings } = await tavern.call<{ settings: string }>("/api/settings/get", {});
  const known = JSON.parse(settings);
  await tavern.call("/api/settings/save", {
    ...known,
    ...{ firstRun: false, username: "Ann", user_avatar: "user-default.png", main_api: "openai" },
    power_user: {
      ...known.power_user,
      personas: { "user-default.png": "Ann", ...Object.fromEntries(further.map(([file, { name }]) => [file, name])) },
      persona_descriptions: {
        "user-default.png": { description: "{{user}} sails.", position: 0 },
        ...Object.fromEntries(further.map(([file, { description }]) => [file, description])),
      },
      persona_show_notifications: false,
      ...{ persona_description: "{{user}} sails.", default_persona: "user-default.png" },
    },
    ...{ tags: [...known.tags, ...tags], tag_map: { ...known.tag_map, ...tag_map } },
    extension_settings: {
      ...known.extension_settings,
      note: { ...known.extension_settings?.note, chara: notes },
    },
    world_info_settings: {
      ...known.world_info_settings,
      world_info: { ...known.world_info_settings?.world_info, charLore, globalSelect },
    },
    oai_settings: {
      ...known.oai_settings,
      ...{ chat_completion_source: "custom", custom_url: url, custom_model: "fake-model", bypass_status_check: true },
      bias_presets: { ...known.oai_settings?.bias_presets, ...biases },
    },
  });
}

/** Opens the page and waits until it has loaded its characters. */
export async function openTavernPage(tavern: SillyTavern, browser: Browser): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(tavern.url, { timeout: READY_MS });
  // SillyTavern's globals aren't known here.
  const isReady = "window.SillyTavern?.getContext?.()?.characters?.length > 0 && !document.getElementById('preloader')";
  await page.waitForFunction(isReady, undefined, { timeout: READY_MS });
  return page;
}
