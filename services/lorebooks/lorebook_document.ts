/**
 * A lorebook as Parlor keeps it: the V3 shape, with what SillyTavern adds under the names SillyTavern itself gives it in
 * `extensions`. Whatever else an author or a program wrote there stays.
 */

/** A lorebook; fields that no version knows are kept. Also the shape of a card's `character_book`. */
export interface Lorebook {
  name?: string;
  description?: string;
  /** Messages that are scanned, counted from the newest. */
  scan_depth?: number;
  /** Tokens that the entries of this book may take together. */
  token_budget?: number;
  /** Entries that fire are scanned as well. */
  recursive_scanning?: boolean;
  extensions?: Record<string, unknown>;
  entries: LorebookEntry[];
  [field: string]: unknown;
}

/** One entry of a lorebook. */
export interface LorebookEntry {
  keys: string[];
  content: string;
  enabled: boolean;
  /** Lower is placed higher up. */
  insertion_order: number;
  extensions: Record<string, unknown>;
  /** Keys written `/…/flags` are patterns. */
  use_regex?: boolean;
  case_sensitive?: boolean;
  /** Fires always. */
  constant?: boolean;
  selective?: boolean;
  secondary_keys?: string[];
  position?: string;
  /** The lowest goes first when a budget is spent. */
  priority?: number;
  id?: number | string;
  name?: string;
  comment?: string;
  [field: string]: unknown;
}

/** Whom a book is there for. */
export type LorebookScope = "global" | "character" | "persona" | "chat";

/** Under which `extensions` hold the fields of SillyTavern that have no place of their own in a V3 lorebook. */
export const SILLYTAVERN_FIELDS = "parlor/sillytavern";
