/** Names of the efforts of thinking. */
import { formatNumber } from "../../texts/format.ts";
import { texts } from "../../texts/texts.ts";
import { type Effort, ON, type Thinking } from "./connection_state.ts";

/** Returns the name of an effort; without steps, thinking is just on. */
export function getEffortName(thinking: Thinking, effort: Effort): string {
  return effort === ON && thinking.efforts.length === 0 ? texts.chat.effort.on : texts.chat.effort[effort];
}

/** As `getEffortName`, with the tokens that the effort allows where the server has such a limit. */
export function getEffortLabel(thinking: Thinking, effort: Effort): string {
  const name = getEffortName(thinking, effort);
  const budget = thinking.budgets[effort];
  return budget === undefined ? name : texts.chat.effort.budget(name, formatNumber(budget));
}
