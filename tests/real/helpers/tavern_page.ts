/** The page of the real SillyTavern in a browser. */
import type { Browser, Page } from "playwright-core";
import type { SillyTavern } from "./silly_tavern.ts";

/** Time limit for a busy machine. */
const READY_MS = 180_000;

/** Writes the settings of a user who chats as Ann over chat completion. @param url Base URL of the model server. */
export async function writeTavernSettings(tavern: SillyTavern, url: string): Promise<void> {
  const { settings } = await tavern.call<{ settings: string }>("/api/settings/get", {});
  const known = JSON.parse(settings);
  await tavern.call("/api/settings/save", {
    ...known,
    ...{ firstRun: false, username: "Ann", user_avatar: "user-default.png", main_api: "openai" },
    power_user: {
      ...known.power_user,
      personas: { "user-default.png": "Ann" },
      persona_descriptions: { "user-default.png": { description: "{{user}} sails.", position: 0 } },
      ...{ persona_description: "{{user}} sails.", default_persona: "user-default.png" },
    },
    oai_settings: {
      ...known.oai_settings,
      ...{ chat_completion_source: "custom", custom_url: url, custom_model: "fake-model", bypass_status_check: true },
    },
  });
}

/** Opens the page and waits until it has loaded its characters. */
export async function openTavernPage(tavern: SillyTavern, browser: Browser): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(tavern.url);
  // SillyTavern's globals aren't known here.
  const isReady = "window.SillyTavern?.getContext?.()?.characters?.length > 0 && !document.getElementById('preloader')";
  await page.waitForFunction(isReady, undefined, { timeout: READY_MS });
  return page;
}
