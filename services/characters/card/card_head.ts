/** What lists show of card files. */
import { nodeCrypto } from "../../crypto/random.ts";
import { foldForSearch } from "../../json/search_fold.ts";
import { foldForSorting, quoteKey } from "../../json/text.ts";
import { type Card, getFolder } from "./card.ts";

/** A character in a list. `updated_at` is the time of its file. */
export interface CharacterItem {
  id: string;
  name: string;
  external: boolean;
  has_avatar: boolean;
  updated_at: string;
  tags: string[];
  creator: string;
  /** Marked as a favorite, as in SillyTavern: `extensions.fav` of the card. */
  favorite: boolean;
  /** `null` if it's in no folder. */
  folder: string | null;
  /** Set if the file has no readable card: only ID, time and the last known name are right then. */
  unreadable?: true;
}

/** One row of table `card_file`. */
export interface CardRow {
  id: string;
  path: string;
  mtimeMs: number;
  size: number;
  isExternal: boolean;
  hasAvatar: boolean;
  /** Sort key, see `quoteKey`; `null` for a file of another program without a readable card, which no list has. */
  name: string | null;
  /** Text for searching. */
  search: string;
  /** Case-folded, without duplicates. */
  tags: string[];
  /** JSON of a `CharacterItem`; `""` if there is none. */
  item: string;
  /** Set for a file of ours without a readable card. */
  isUnreadable?: true;
}

/** A card file on disk. */
export interface CardFileStat {
  id: string;
  path: string;
  mtimeMs: number;
  size: number;
  isExternal: boolean;
}

/** Maximum number of tags in a list item. */
export const MAX_LISTED_TAGS = 100;
/** Maximum length of a text in a list item. */
export const MAX_LISTED_CHARACTERS = 500;

/** What lists show of a card, whatever its file is. */
export type CardHead = Pick<CharacterItem, "name" | "tags" | "creator" | "favorite" | "folder">;

/** Returns what lists show of a card. */
export function toCardHead(card: Card): CardHead {
  const { data } = card;
  return {
    name: data.name.slice(0, MAX_LISTED_CHARACTERS),
    tags: data.tags.slice(0, MAX_LISTED_TAGS).map((tag) => tag.slice(0, MAX_LISTED_CHARACTERS)),
    creator: data.creator.slice(0, MAX_LISTED_CHARACTERS),
    // Old versions of SillyTavern write the string.
    favorite: data.extensions.fav === true || data.extensions.fav === "true",
    folder: getFolder(card),
  };
}

/** Returns the list item of a card. */
export function toCharacterItem(file: CardFileStat, card: Card): CharacterItem {
  return toItem(file, toCardHead(card));
}

function toItem(file: CardFileStat, { name, tags, creator, favorite, folder }: CardHead): CharacterItem {
  return {
    id: file.id,
    name,
    external: file.isExternal,
    has_avatar: isPngPath(file.path),
    updated_at: new Date(file.mtimeMs).toISOString(),
    tags,
    creator,
    favorite,
    folder,
  };
}

/** Returns the row of a card. */
export function toCardRow(file: CardFileStat, card: Card): CardRow {
  return toHeadRow(file, toCardHead(card));
}

/** Returns the row of a card of which only this is known. */
export function toHeadRow(file: CardFileStat, head: CardHead): CardRow {
  const item = toItem(file, head);
  const tags = [...new Set(item.tags.map(foldForSorting))];
  return {
    ...file,
    hasAvatar: item.has_avatar,
    name: quoteKey(item.name),
    search: [item.name, item.creator, ...item.tags].map(foldForSearch).join("\n"),
    tags,
    item: JSON.stringify(item),
  };
}

/**
 * Returns the row of a file without a readable card. It's read again when it changes.
 *
 * @param knownName Its name when it was last read; the ID by default.
 */
export function toUnreadableRow(file: CardFileStat, knownName = file.id): CardRow {
  const row = { ...file, hasAvatar: isPngPath(file.path), tags: [] };
  if (file.isExternal) return { ...row, name: null, search: "", item: "" };
  const item: CharacterItem = {
    id: file.id,
    name: knownName,
    external: false,
    has_avatar: false,
    updated_at: new Date(file.mtimeMs).toISOString(),
    tags: [],
    creator: "",
    favorite: false,
    folder: null,
    unreadable: true,
  };
  return {
    ...row,
    name: quoteKey(item.name),
    search: foldForSearch(item.name),
    item: JSON.stringify(item),
    isUnreadable: true,
  };
}

/** Derives the id of a file whose name isn't one. Stable for the same folder and name. */
export function deriveCardId(folder: string, name: string): string {
  return `f-${nodeCrypto().createHash("sha256").update(`${folder}\0${name}`).digest("base64url").slice(0, 22)}`;
}

/** Reports whether a card file is a PNG. */
export function isPngPath(path: string): boolean {
  return /\.png$/i.test(path);
}
