/** What ties the composer to its list of commands, which is loaded when it first opens. */
import type { CommandName } from "../../../state/chat/slash_commands.ts";

/** Id of the list, for the field it belongs to. */
export const LIST_ID = "composer-commands";

/** Id of one entry. */
export function optionId(name: CommandName): string {
  return `${LIST_ID}-${name}`;
}
