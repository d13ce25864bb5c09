/** English texts of screens that load on demand. The texts of the first screen are in en.ts. */
import { auth } from "./auth.ts";
import { characters } from "./characters.ts";
import { lists } from "./lists.ts";
import { images } from "./images.ts";
import { knowledge } from "./knowledge.ts";
import { models } from "./models.ts";
import { importExport } from "./import_export.ts";
import { chatOptions } from "./chat_options.ts";
import { settings } from "./settings.ts";
import { presets } from "./presets.ts";
import { tools } from "./tools.ts";
import { speech } from "./speech.ts";

/** The areas that the first load doesn't need. */
export const later = {
  ...lists,
  ...settings,
  ...models,
  ...characters,
  ...auth,
  ...importExport,
  ...speech,
  ...images,
  ...tools,
  ...knowledge,
  ...presets,
  ...chatOptions,
};
