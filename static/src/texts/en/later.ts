/** English texts of screens that load on demand. The texts of the first screen are in en.ts. */
import { auth } from "./auth.ts";
import { characters } from "./characters.ts";
import { connectionForm } from "./connection_form.ts";
import { history } from "./history.ts";
import { activity } from "./activity.ts";
import { images } from "./images.ts";
import { lorebooks } from "./lorebooks.ts";
import { models } from "./models.ts";
import { importExport } from "./import_export.ts";
import { chatOptions } from "./chat_options.ts";
import { settings } from "./settings.ts";
import { slashCommands } from "./slash_commands.ts";
import { presets } from "./presets.ts";
import { tailnet } from "./tailnet.ts";
import { data } from "./data.ts";
import { speech } from "./speech.ts";
import { setup } from "./setup.ts";

/** The areas that the first load doesn't need. */
export const later = {
  ...history,
  ...activity,
  ...settings,
  ...models,
  ...characters,
  ...auth,
  ...data,
  ...importExport,
  ...speech,
  ...images,
  ...connectionForm,
  ...slashCommands,
  ...tailnet,
  ...lorebooks,
  ...presets,
  ...setup,
  ...chatOptions,
};
