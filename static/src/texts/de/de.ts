/** German. */
import type { Texts } from "../en/en.ts";
import { auth } from "./auth.ts";
import { characters } from "./characters.ts";
import { chat } from "./chat.ts";
import { common } from "./common.ts";
import { compare } from "./compare.ts";
import { connectionForm } from "./connection_form.ts";
import { cures } from "./cures.ts";
import { connections } from "./connections.ts";
import { history } from "./history.ts";
import { activity } from "./activity.ts";
import { images } from "./images.ts";
import { lorebooks } from "./lorebooks.ts";
import { memory } from "./memory.ts";
import { models } from "./models.ts";
import { importExport } from "./import_export.ts";
import { nav } from "./nav.ts";
import { palette } from "./palette.ts";
import { personas } from "./personas.ts";
import { chatOptions } from "./chat_options.ts";
import { presets } from "./presets.ts";
import { promptTemplates } from "./prompt_templates.ts";
import { selection } from "./selection.ts";
import { settings } from "./settings.ts";
import { slashCommands } from "./slash_commands.ts";
import { tailnet } from "./tailnet.ts";
import { tools } from "./tools.ts";
import { toolServers } from "./tool_servers.ts";
import { data } from "./data.ts";
import { documents } from "./documents.ts";
import { speech } from "./speech.ts";
import { talk } from "./talk.ts";
import { setup } from "./setup.ts";

/** All texts of the page. */
export const de: Texts = {
  ...common,
  ...nav,
  ...chat,
  ...connections,
  ...connectionForm,
  ...cures,
  ...memory,
  ...models,
  ...lorebooks,
  ...presets,
  ...promptTemplates,
  ...images,
  ...history,
  ...activity,
  ...palette,
  ...chatOptions,
  ...compare,
  ...selection,
  ...settings,
  ...characters,
  ...personas,
  ...auth,
  ...slashCommands,
  ...tailnet,
  ...tools,
  ...toolServers,
  ...data,
  ...importExport,
  ...documents,
  ...speech,
  ...talk,
  ...setup,
};
