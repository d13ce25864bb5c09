/** Lorebooks on the wire, as the page uses them, and the calls about them. */
import type { CardBook } from "./character_types.ts";
import type { ApiClient } from "./client.ts";
import { type DocumentApi, documentApi } from "./documents.ts";

/** Whom a lorebook is there for. */
export type LorebookScope = "global" | "character" | "persona" | "chat";

/** A lorebook without its entries. */
export interface LorebookItem {
  id: string;
  name: string;
  enabled: boolean;
  scope: LorebookScope;
  character_ids: string[];
  persona_ids: string[];
  entry_count: number;
  updated_at: string;
  /** Set where it cannot be opened. */
  error?: { code: string };
}

/** A whole lorebook. */
export interface Lorebook extends LorebookItem {
  book: CardBook;
}

/** What a person changes in a lorebook. */
export type LorebookFields = Pick<Lorebook, "name" | "enabled" | "scope" | "character_ids" | "persona_ids" | "book">;

/** What a lorebook is tried on. */
export interface LorebookTrialRequest {
  book: CardBook;
  conversation_id?: string;
  /** Scanned as the newest message, or alone. */
  text?: string;
}

/** An entry that would go into the prompt. */
export interface FiredEntry {
  entry_id: string;
  entry_name: string;
  position: string;
  depth?: number;
  tokens: number;
  /** Percent, where it is left to chance. */
  probability?: number;
  reason: { kind: "key" | "constant" | "sticky" | "recursion" | "decorator"; key?: string };
}

/** An entry that came close. */
export interface MissedEntry {
  entry_id: string;
  entry_name: string;
  /** `budget`, `group`, `secondary_keys`, … */
  reason: string;
  key?: string;
}

/** What a trial found. */
export interface LorebookTrial {
  entries: FiredEntry[];
  dropped: MissedEntry[];
  tokens: number;
}

/** Calls about lorebooks. */
export interface LorebookApi extends DocumentApi<LorebookItem, Lorebook> {
  try(request: LorebookTrialRequest, signal: AbortSignal): Promise<LorebookTrial>;
}

/** Binds the calls to one client. */
export function lorebookApi(client: ApiClient): LorebookApi {
  return {
    ...documentApi<LorebookItem, Lorebook>(client, "/api/lorebooks"),
    try: async (request, signal) =>
      await (await client.send("POST", "/api/lorebooks/test", { body: request, signal })).json() as LorebookTrial,
  };
}
