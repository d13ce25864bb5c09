/** Tries a lorebook on a text or a conversation: which entries become active, by which key, and which are dropped. */
import { AppError } from "../errors.ts";
import { activate, type Activation, type ActivationInput, type KeyMatcher, type ScannedMessage } from "./activation.ts";
import type { ActivationBook } from "./scan_entries.ts";
import { parseLorebook } from "./lorebook_parse.ts";
import type { Lorebooks } from "./lorebooks.ts";

/** A conversation to scan. */
export interface ScannedConversation {
  /** Oldest first, without hidden messages. The newest ones are enough. */
  messages: ScannedMessage[];
  /** Number of messages in the whole conversation. */
  messageCount: number;
  /** Texts scanned besides the messages. */
  scanTexts: NonNullable<ActivationInput["scanTexts"]>;
  /** Expands macros as in a prompt. */
  expand(text: string): string;
}

/** What to try. */
export interface TrialRequest {
  /** A draft in any supported format; alternatively the id of a stored book. */
  book?: unknown;
  lorebookId?: string;
  /** The conversation to scan, and a text to scan as its last message or alone. */
  conversationId?: string;
  text?: string;
  budgetTokens?: number;
}

/** Dependencies of a trial. */
export interface TrialDeps {
  lorebooks: Lorebooks;
  matcher: KeyMatcher;
  /** @throws {AppError} `not_found` */
  conversation(id: string): Promise<ScannedConversation>;
  countTokens(text: string): number;
}

/** Id of a draft in results. */
const DRAFT = "draft";

/**
 * Tries a book. Entries with a probability are always active in a trial, and report it. Timed effects don't apply.
 *
 * @throws {AppError} `invalid_request` without a book or anything to scan; `not_found`; `unprocessable`
 */
export async function tryLorebook(request: TrialRequest, parts: TrialDeps): Promise<Activation> {
  const owner = await loadBook(request, parts.lorebooks);
  if (request.conversationId === undefined && request.text === undefined) {
    throw invalidTrial("conversation_id", "a trial needs a conversation or a text to scan");
  }
  const scanned = request.conversationId === undefined ? undefined : await parts.conversation(request.conversationId);
  const said = request.text === undefined ? [] : [{ role: "user", text: request.text }];
  return await activate({
    books: [owner],
    messages: [...scanned?.messages ?? [], ...said],
    messageCount: (scanned?.messageCount ?? 0) + said.length,
    ...(scanned && { expand: scanned.expand, scanTexts: scanned.scanTexts }),
    countTokens: parts.countTokens,
    budgetTokens: request.budgetTokens,
    matcher: parts.matcher,
    random: () => 0,
  });
}

async function loadBook({ book, lorebookId }: TrialRequest, lorebooks: Lorebooks): Promise<ActivationBook> {
  if (book !== undefined) {
    const parsed = parseLorebook(book);
    return { id: DRAFT, name: parsed.name ?? "", scope: "chat", book: parsed.book };
  }
  if (lorebookId === undefined) throw invalidTrial("book", "a trial needs a book or the id of one");
  const { id, head, body } = await lorebooks.get(lorebookId);
  return { id, name: head.name, scope: "chat", book: body };
}

function invalidTrial(path: string, message: string): AppError {
  return new AppError("invalid_request", `Can't try the lorebook: ${message}`, { issues: [{ path, message }] });
}
