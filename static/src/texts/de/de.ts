/** German. */
import type { Texts } from "../en/en.ts";
import { auth } from "./auth.ts";
import { characters } from "./characters.ts";
import { chat } from "./chat.ts";
import { shell } from "./shell.ts";
import { connections } from "./connections.ts";
import { lists } from "./lists.ts";
import { images } from "./images.ts";
import { knowledge } from "./knowledge.ts";
import { models } from "./models.ts";
import { importExport } from "./import_export.ts";
import { chatOptions } from "./chat_options.ts";
import { presets } from "./presets.ts";
import { settings } from "./settings.ts";
import { tools } from "./tools.ts";
import { speech } from "./speech.ts";

/** All texts of the page. */
export const de: Texts = {
  ...shell,
  ...chat,
  ...connections,
  ...models,
  ...knowledge,
  ...presets,
  ...images,
  ...lists,
  ...chatOptions,
  ...settings,
  ...characters,
  ...auth,
  ...tools,
  ...importExport,
  ...speech,
  personas: { ...chat.personas, ...lists.personas },
};
