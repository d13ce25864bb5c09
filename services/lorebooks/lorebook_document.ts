/**
 * The stored form of lorebooks: V3, with SillyTavern's additions in `extensions` under SillyTavern's names. Unknown
 * fields are kept.
 */

/** A lorebook, or the `character_book` of a card. Unknown fields are kept. */
export interface Lorebook {
  name?: string;
  description?: string;
  /** Number of newest messages to scan. */
  scan_depth?: number;
  /** Token limit of the entries of this book together. */
  token_budget?: number;
  /** Also scans the content of active entries. */
  recursive_scanning?: boolean;
  extensions?: Record<string, unknown>;
  entries: LorebookEntry[];
  [field: string]: unknown;
}

/** One entry. */
export interface LorebookEntry {
  keys: string[];
  content: string;
  enabled: boolean;
  /** Lower comes first. */
  insertion_order: number;
  extensions: Record<string, unknown>;
  /** Keys written as `/…/flags` are regular expressions. */
  use_regex?: boolean;
  case_sensitive?: boolean;
  /** Always active. */
  constant?: boolean;
  selective?: boolean;
  secondary_keys?: string[];
  position?: string;
  /** The lowest is dropped first if the budget is exceeded. */
  priority?: number;
  id?: number | string;
  name?: string;
  comment?: string;
  [field: string]: unknown;
}

/** Where a book applies. */
export type LorebookScope = "global" | "character" | "persona" | "chat";

/** Key in `extensions` for SillyTavern fields without a V3 equivalent. */
export const SILLYTAVERN_FIELDS = "parlor/sillytavern";
