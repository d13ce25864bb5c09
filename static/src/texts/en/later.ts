/** English texts of screens that load on demand. The texts of the first screen are in en.ts. */
import { auth } from "./auth.ts";
import { characters } from "./characters.ts";
import { compare } from "./compare.ts";
import { connectionForm } from "./connection_form.ts";
import { cures } from "./cures.ts";
import { history } from "./history.ts";
import { activity } from "./activity.ts";
import { images } from "./images.ts";
import { lorebooks } from "./lorebooks.ts";
import { memory } from "./memory.ts";
import { models } from "./models.ts";
import { importExport } from "./import_export.ts";
import { chatOptions } from "./chat_options.ts";
import { selection } from "./selection.ts";
import { settings } from "./settings.ts";
import { slashCommands } from "./slash_commands.ts";
import { presets } from "./presets.ts";
import { promptTemplates } from "./prompt_templates.ts";
import { tailnet } from "./tailnet.ts";
import { tools } from "./tools.ts";
import { toolServers } from "./tool_servers.ts";
import { data } from "./data.ts";
import { documents } from "./documents.ts";
import { speech } from "./speech.ts";
import { talk } from "./talk.ts";
import { setup } from "./setup.ts";

/** The areas that the first load doesn't need. */
export const later = {
  ...history,
  ...activity,
  ...compare,
  ...selection,
  ...settings,
  ...memory,
  ...models,
  ...characters,
  ...auth,
  ...data,
  ...importExport,
  ...documents,
  ...speech,
  ...talk,
  ...images,
  ...connectionForm,
  ...cures,
  ...slashCommands,
  ...tailnet,
  ...tools,
  ...toolServers,
  ...lorebooks,
  ...presets,
  ...promptTemplates,
  ...setup,
  ...chatOptions,
};
