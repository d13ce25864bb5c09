/** Lorebooks in the API. */
import { runInSteps } from "../../services/async/delay.ts";
import type { Lorebook as StoredBook } from "../../services/lorebooks/lorebook_document.ts";
import { collectBookLedger } from "../../services/lorebooks/lorebook_ledger.ts";
import { createRoute, z } from "@hono/zod-openapi";
import type { Activation, EntryName } from "../../services/lorebooks/activation.ts";
import type { ListedLorebook, LorebookWithBook, StoredLorebook } from "../../services/lorebooks/lorebooks.ts";
import { ERRORS, Id, IdParams, json, jsonBody, LedgerSchema, Time, toLedgerField, Unreadable } from "./common.ts";
import { documentFile, versionedDocumentRoutes } from "./versions.ts";

const Scope = z.enum(["global", "character", "persona", "chat"]).openapi({
  description:
    "Where it applies: in all chats, in chats with a character of character_ids or a persona of persona_ids, or in chats that list it in lorebook_ids",
});
const Ids = z.array(Id).max(1_000);
const Book = z.record(z.string(), z.unknown()).openapi({
  description:
    "A V3 lorebook: name, description, scan_depth, token_budget, recursive_scanning, extensions, entries. What SillyTavern " +
    "adds to an entry is in its extensions, under the names it has in cards. Unknown fields are preserved.",
});

const LorebookItem = z.object({
  id: z.string(),
  name: z.string(),
  enabled: z.boolean(),
  scope: Scope,
  character_ids: z.array(z.string()),
  persona_ids: z.array(z.string()),
  entry_count: z.number().int(),
  created_at: Time,
  updated_at: Time,
  error: Unreadable.optional(),
}).openapi("LorebookItem");

const LorebookResponse = LorebookItem.extend({ book: Book, ledger: LedgerSchema.optional() }).openapi("Lorebook");

/** The body of a PUT. */
export const LorebookBody = z.object({
  name: z.string().max(200).nullish(),
  enabled: z.boolean().nullish(),
  scope: Scope.nullish(),
  character_ids: Ids.nullish(),
  persona_ids: Ids.nullish(),
  book: Book.optional().openapi({
    description: "A V3 lorebook, lorebook_v3 or SillyTavern's world info; if absent, the body itself is such a book",
  }),
}).loose().openapi("LorebookInput", { description: "Omitted fields keep their value, except the book itself" });

const Format = z.enum(["sillytavern", "lorebook_v3", "character_book"]);

const NamedEntry = z.object({
  lorebook_id: z.string(),
  lorebook_name: z.string(),
  entry_id: z.string(),
  entry_name: z.string(),
});

/** An entry that is added to a prompt. */
const FiredEntry = NamedEntry.extend({
  content: z.string(),
  position: z.string(),
  depth: z.number().optional(),
  role: z.string().optional(),
  order: z.number(),
  tokens: z.number(),
  probability: z.number().optional().openapi({ description: "Percent, if the entry has a probability" }),
  reason: z.object({
    kind: z.enum(["key", "constant", "sticky", "recursion", "decorator"]),
    key: z.string().optional(),
  }),
}).openapi("FiredEntry");

/** An entry that nearly activated. */
export const MissedEntry = NamedEntry.extend({
  reason: z.string().openapi({ description: "budget, secondary_keys, group, cooldown, too_slow, …" }),
  key: z.string().optional(),
}).openapi("MissedEntry");

/** The body of a test. */
export const TestBody = z.object({
  book: Book.optional().openapi({ description: "A draft, in any format that can be imported" }),
  lorebook_id: Id.nullish().openapi({ description: "ID of a saved lorebook. Ignored if the request has a draft" }),
  conversation_id: Id.nullish(),
  text: z.string().max(200_000).nullish().openapi({ description: "Text to scan as the newest message, or on its own" }),
  budget_tokens: z.number().int().min(0).max(100_000_000).nullish().openapi({
    description: "Most tokens of all entries. Default: the limits in the settings",
  }),
});

const TestResponse = z.object({
  entries: z.array(FiredEntry),
  dropped: z.array(MissedEntry),
  tokens: z.number(),
  disabled_prompts: z.array(z.string()),
}).openapi("LorebookTrial");

/** Converts a request body to the type of the service. */
export function toLorebookInput(body: z.infer<typeof LorebookBody>): LorebookWithBook {
  const { name, enabled, scope, character_ids, persona_ids, book } = body;
  return {
    name: name ?? undefined,
    isEnabled: enabled === null ? true : enabled,
    scope: scope === null ? "global" : scope,
    characterIds: character_ids === null ? [] : character_ids,
    personaIds: persona_ids === null ? [] : persona_ids,
    book: book ?? body,
  };
}

/** Converts a list entry to its JSON form. */
export function toLorebookItem({ id, head, createdAtMs, updatedAtMs }: ListedLorebook): z.infer<typeof LorebookItem> {
  return {
    id,
    name: head?.name ?? "",
    enabled: head?.isEnabled ?? false,
    scope: head?.scope ?? "chat",
    character_ids: head?.characterIds ?? [],
    persona_ids: head?.personaIds ?? [],
    entry_count: head?.entryCount ?? 0,
    created_at: new Date(createdAtMs).toISOString(),
    updated_at: new Date(updatedAtMs).toISOString(),
    ...(head === undefined && { error: { code: "unreadable" as const } }),
  };
}

/** Converts a book to its JSON form. */
export async function toLorebookJson(book: StoredLorebook): Promise<z.infer<typeof LorebookResponse>> {
  const ledger = [...book.head.ledger ?? [], ...await runInSteps(collectBookLedger(book.body))];
  return { ...toLorebookItem(book), book: book.body, ...toLedgerField(ledger) };
}

/** Converts the result of a scan to its JSON form. */
export function toTestJson({ entries, dropped, tokens, disabledPrompts }: Activation): z.infer<typeof TestResponse> {
  return {
    entries: entries.map(({ isDroppedFirst: _, bookId, bookName, entryId, entryName, ...entry }) => ({
      ...named({ bookId, bookName, entryId, entryName }),
      ...entry,
    })),
    dropped: dropped.map(({ entry, reason, key }) => ({ ...named(entry), reason, key })),
    tokens,
    disabled_prompts: disabledPrompts,
  };
}

function named({ bookId, bookName, entryId, entryName }: EntryName): z.infer<typeof NamedEntry> {
  return { lorebook_id: bookId, lorebook_name: bookName, entry_id: entryId, entry_name: entryName };
}

const path = "/api/lorebooks";
const tags = ["Lorebooks"];

/** All. */
export const listRoute = createRoute({
  method: "get",
  path,
  tags,
  summary: "List lorebooks without their entries, newest first",
  responses: { 200: json(z.array(LorebookItem), "The lorebooks"), ...ERRORS },
});

/** Get, save, delete and import one. */
export const { getRoute, putRoute, deleteRoute, importRoute } = versionedDocumentRoutes(
  {
    path,
    tags,
    noun: "lorebook",
    change: "replace",
    importSummary: "Import a lorebook: SillyTavern's world info, lorebook_v3, a bare book, or the one in a card's JSON",
  },
  { response: LorebookResponse, body: LorebookBody },
);

/** Export as a file. */
export const exportRoute = createRoute({
  method: "get",
  path: `${path}/{id}/export`,
  tags,
  summary: "Export a lorebook as a file",
  request: { params: IdParams, query: z.object({ format: Format.default("sillytavern") }) },
  responses: { 200: documentFile, ...ERRORS },
});

/** Test. */
export const testRoute = createRoute({
  method: "post",
  path: `${path}/test`,
  tags,
  summary:
    "Test a lorebook against a text or a conversation: which entries activate, by which key, and which nearly do",
  request: { body: jsonBody(TestBody) },
  responses: { 200: json(TestResponse, "The entries that activate; probabilities are ignored"), ...ERRORS },
});

/** An entry of a lorebook. */
export type { LorebookEntry as LorebookEntryJson } from "../../services/lorebooks/lorebook_document.ts";

/** A lorebook without its entries. */
export type LorebookItemJson = z.output<typeof LorebookItem>;

/** A lorebook with its entries. */
export type LorebookJson = Omit<z.output<typeof LorebookResponse>, "book"> & { book: StoredBook };

/** The body of a lorebook test. */
export type LorebookTestRequestJson = z.input<typeof TestBody>;

/** The result of a lorebook test. */
export type LorebookTestJson = z.output<typeof TestResponse>;
