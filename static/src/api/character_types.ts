/** Characters and personas on the wire, as the page uses them. A card is its author's document: unknown fields stay. */

/** A character as lists have it. */
export interface CharacterItem {
  id: string;
  name: string;
  /** Lies in another program's folder and is read-only. */
  external: boolean;
  has_avatar: boolean;
  updated_at: string;
  tags: string[];
  creator: string;
}

/** One entry of a lorebook. */
export interface BookEntry {
  keys: string[];
  content: string;
  enabled: boolean;
  insertion_order: number;
  extensions: Record<string, unknown>;
  secondary_keys?: string[];
  selective?: boolean;
  constant?: boolean;
  case_sensitive?: boolean;
  position?: string;
  name?: string;
  comment?: string;
  [field: string]: unknown;
}

/** The lorebook inside a card. */
export interface CardBook {
  entries: BookEntry[];
  [field: string]: unknown;
}

/** What a card says of its character. */
export interface CardData {
  name: string;
  nickname?: string;
  description: string;
  personality: string;
  scenario: string;
  first_mes: string;
  alternate_greetings: string[];
  group_only_greetings: string[];
  mes_example: string;
  system_prompt: string;
  post_history_instructions: string;
  creator: string;
  creator_notes: string;
  character_version: string;
  /** By ISO 639-1 code. */
  creator_notes_multilingual?: Record<string, string>;
  tags: string[];
  character_book?: CardBook;
  extensions: Record<string, unknown>;
  [field: string]: unknown;
}

/** A whole card, version 3. */
export interface Card {
  spec: string;
  spec_version: string;
  data: CardData;
  [field: string]: unknown;
}

/** A character with its card. */
export interface Character extends CharacterItem {
  /** It came in a CHARX with other files, which only a CHARX takes along. */
  has_assets: boolean;
  card: Card;
}

/** A character as it stands. */
export interface ReadCharacter {
  character: Character;
  /** The ETag of the card, as `If-Match` wants it. */
  version: string;
}

/** What a list of characters is narrowed to. */
export interface CharacterQuery {
  q: string;
  tag: string;
  sort: "name" | "updated";
}

/** Where the portrait job of a character stands. */
export interface Portrait {
  state: "none" | "pending" | "running" | "done" | "failed";
  progress?: number;
  error?: { code: string; message: string };
}

/** A card that the card site offers. */
export interface FoundCard {
  id: string;
  name: string;
  tagline: string;
  creator: string;
  tags: string[];
  /** An address of our own server. */
  avatar_url: string;
  page_url: string;
  downloads: number | null;
  stars: number | null;
  updated_at: string | null;
}

/** What is looked for at the card site. */
export interface CardSiteQuery {
  q: string;
  tags: string;
  sort: string;
  nsfw: boolean;
}

/** Who the owner is in a chat. */
export interface Persona {
  id: string;
  name: string;
  description: string;
  has_avatar: boolean;
  updated_at: string;
}
