/** Japanese. */
import type { Texts } from "../en/en.ts";
import { auth } from "./auth.ts";
import { characters } from "./characters.ts";
import { chat } from "./chat.ts";
import { common } from "./common.ts";
import { connectionForm } from "./connection_form.ts";
import { connections } from "./connections.ts";
import { activity } from "./activity.ts";
import { images } from "./images.ts";
import { lorebooks } from "./lorebooks.ts";
import { memory } from "./memory.ts";
import { models } from "./models.ts";
import { importExport } from "./import_export.ts";
import { nav } from "./nav.ts";
import { personas } from "./personas.ts";
import { chatOptions } from "./chat_options.ts";
import { presets } from "./presets.ts";
import { selection } from "./selection.ts";
import { settings } from "./settings.ts";
import { tailnet } from "./tailnet.ts";
import { tools } from "./tools.ts";
import { documents } from "./documents.ts";
import { speech } from "./speech.ts";

/** All texts of the page. */
export const ja: Texts = {
  ...common,
  ...nav,
  ...chat,
  ...connections,
  ...connectionForm,
  ...memory,
  ...models,
  ...lorebooks,
  ...presets,
  ...images,
  ...activity,
  ...chatOptions,
  ...selection,
  ...settings,
  ...characters,
  ...personas,
  ...auth,
  ...tailnet,
  ...tools,
  ...importExport,
  ...documents,
  ...speech,
};
