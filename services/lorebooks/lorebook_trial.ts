/** "Would it fire here?": scans a text or a conversation for one book and says what fires, by which key, and what nearly did. */
import { AppError } from "../errors.ts";
import { activate, type Activation, type ActivationInput, type KeyMatcher, type ScannedMessage } from "./activation.ts";
import type { ActivationBook } from "./scan_entries.ts";
import { parseLorebook } from "./lorebook_parse.ts";
import type { Lorebooks } from "./lorebooks.ts";

/** What a conversation offers to a scan. */
export interface ScannedConversation {
  /** Oldest first, hidden ones left out; the newest are enough. */
  messages: ScannedMessage[];
  /** Messages of the whole conversation. */
  turn: number;
  /** What stands beside the messages. */
  scanTexts: NonNullable<ActivationInput["scanTexts"]>;
  /** Expands macros as the prompt does. */
  expand(text: string): string;
}

/** What is tried. */
export interface TrialRequest {
  /** A draft in any form that is read, or else the id of a saved book. */
  book?: unknown;
  lorebookId?: string;
  /** The conversation to scan, and a text to scan as the message after its last, or alone. */
  conversationId?: string;
  text?: string;
  budgetTokens?: number;
}

/** What a trial needs. */
export interface TrialParts {
  lorebooks: Lorebooks;
  matcher: KeyMatcher;
  /** @throws {AppError} `not_found` */
  conversation(id: string): Promise<ScannedConversation>;
  countTokens(text: string): number;
}

/** Id of a draft, in results. */
const DRAFT = "draft";

/**
 * Tries a book. Chance is left out: an entry that may fire does, and says how probable that is. So is what fired
 * earlier: nothing is sticky, and nothing rests.
 *
 * @throws {AppError} `invalid_request` without a book or without anything to scan; `not_found`; `unprocessable`
 */
export async function tryLorebook(request: TrialRequest, parts: TrialParts): Promise<Activation> {
  const owner = await bookOf(request, parts.lorebooks);
  if (request.conversationId === undefined && request.text === undefined) {
    throw refused("conversation_id", "a trial needs a conversation or a text to scan");
  }
  const scanned = request.conversationId === undefined ? undefined : await parts.conversation(request.conversationId);
  const said = request.text === undefined ? [] : [{ role: "user", text: request.text }];
  return await activate({
    books: [owner],
    messages: [...scanned?.messages ?? [], ...said],
    turn: (scanned?.turn ?? 0) + said.length,
    ...(scanned && { expand: scanned.expand, scanTexts: scanned.scanTexts }),
    countTokens: parts.countTokens,
    budgetTokens: request.budgetTokens,
    matcher: parts.matcher,
    random: () => 0,
  });
}

async function bookOf({ book, lorebookId }: TrialRequest, lorebooks: Lorebooks): Promise<ActivationBook> {
  if (book !== undefined) {
    const parsed = parseLorebook(book);
    return { id: DRAFT, name: parsed.name ?? "", scope: "chat", book: parsed.book };
  }
  if (lorebookId === undefined) throw refused("book", "a trial needs a book or the id of one");
  const { id, head, body } = await lorebooks.get(lorebookId);
  return { id, name: head.name, scope: "chat", book: body };
}

function refused(path: string, message: string): AppError {
  return new AppError("invalid_request", `Cannot try the lorebook: ${message}`, { issues: [{ path, message }] });
}
