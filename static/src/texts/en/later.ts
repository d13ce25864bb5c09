/** English texts of screens that load on demand. The texts of the first screen are in en.ts. */
import { auth } from "./auth.ts";
import { characters } from "./characters.ts";
import { connectionForm } from "./connection_form.ts";
import { activity } from "./activity.ts";
import { images } from "./images.ts";
import { lorebooks } from "./lorebooks.ts";
import { memory } from "./memory.ts";
import { models } from "./models.ts";
import { importExport } from "./import_export.ts";
import { chatOptions } from "./chat_options.ts";
import { selection } from "./selection.ts";
import { settings } from "./settings.ts";
import { presets } from "./presets.ts";
import { tailnet } from "./tailnet.ts";
import { tools } from "./tools.ts";
import { documents } from "./documents.ts";
import { speech } from "./speech.ts";

/** The areas that the first load doesn't need. */
export const later = {
  ...activity,
  ...selection,
  ...settings,
  ...memory,
  ...models,
  ...characters,
  ...auth,
  ...importExport,
  ...documents,
  ...speech,
  ...images,
  ...connectionForm,
  ...tailnet,
  ...tools,
  ...lorebooks,
  ...presets,
  ...chatOptions,
};
