/** Texts of screens that are opened on demand, which load them; what the first screen says is in en.ts. */
import { access } from "./auth.ts";
import { characters } from "./characters.ts";
import { connectionForm } from "./connection_form.ts";
import { history } from "./history.ts";
import { house } from "./activity.ts";
import { images } from "./images.ts";
import { lorebooks } from "./lorebooks.ts";
import { models } from "./models.ts";
import { moving } from "./import_export.ts";
import { sending } from "./chat_options.ts";
import { settings } from "./settings.ts";
import { slashCommands } from "./slash_commands.ts";
import { presets } from "./presets.ts";
import { tailnet } from "./tailnet.ts";
import { upkeep } from "./data.ts";
import { voice } from "./speech.ts";
import { welcome } from "./setup.ts";

/** The areas that the first load does without. */
export const later = {
  ...history,
  ...house,
  ...settings,
  ...models,
  ...characters,
  ...access,
  ...upkeep,
  ...moving,
  ...voice,
  ...images,
  ...connectionForm,
  ...slashCommands,
  ...tailnet,
  ...lorebooks,
  ...presets,
  ...welcome,
  ...sending,
};
