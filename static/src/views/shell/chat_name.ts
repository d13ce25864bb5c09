/** The name of a chat in lists, headers and menus: its characters and its title. */
import { stripTags } from "../../markdown/html_tags.ts";
import type { ConversationSummary } from "../../api/types.ts";
import type { Profiles } from "../../state/characters/profiles.ts";
import { texts } from "../../texts/texts.ts";

/** The name of a chat in parts. */
export interface ChatName {
  /** Names of its characters; `""` in a chat without one. */
  who: string;
  /** The title; `""` if there is none yet. */
  about: string;
  /** `<character>: <title>`, as screen readers say it. */
  full: string;
}

type Named = Pick<ConversationSummary, "title" | "character_ids" | "has_greeting_title" | "snippet" | "message_count">;

/** Names a chat. The characters' names come with `people.loadListItems`. */
export function nameChat(people: Pick<Profiles, "getListItem">, item: Named): ChatName {
  const who = item.character_ids.map((id) => people.getListItem(id)?.name).filter(Boolean).join(", ");
  // A greeting's first words are not a title.
  const title = item.has_greeting_title ? "" : withoutName(item.title, who);
  const isGreeted = item.character_ids.length > 0 && item.message_count < 2;
  const about = title || (isGreeted ? "" : toPlainText(item.snippet));
  const full = who === "" ? about || texts.nav.untitled : `${who}: ${about || texts.nav.newChat}`;
  return { who, about, full };
}

/** Removes the name that other programs put before a title: `"Ada - 2026-05-03@12h03m"`. */
function withoutName(title: string, name: string): string {
  if (name === "" || !title.startsWith(name)) return title;
  const rest = /^\s*[-–—:]\s*(.*)$/s.exec(title.slice(name.length))?.[1] ?? title;
  return rest.trim() === "" ? title : rest;
}

/** Returns the beginning of a message as one line without its markup. */
export function toPlainText(text: string | undefined): string {
  return stripTags((text ?? "").replace(/<think(?:ing)?>.*?(?:<\/think(?:ing)?>|$)/gs, ""))
    .replace(/!?\[([^\]]*)\]\([^)\s]*\)?/g, "$1")
    .replace(/<[a-z]+\s[^<>]*=[^<>]*$/i, "") // cut off
    .replace(/^\s*(?:\+|\d+\.)\s+/gm, "")
    .replace(/(^|\s)(?:#{1,6}|>|-)\s+/g, "$1")
    // Within a word, an underscore is a sign.
    .replace(/[*`~|]+|(?<![\p{L}\p{N}_])_+|_+(?![\p{L}\p{N}_])/gu, "")
    .replace(/\s+/g, " ")
    .trim();
}
