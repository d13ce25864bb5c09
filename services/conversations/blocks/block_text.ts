/** The text of blocks: the JSON of messages, joined by commas, in pieces of about 16 KiB. */
import { isTickUsedUp, yieldToEventLoop } from "../../async/delay.ts";
import type { Message } from "../message.ts";

/** Size at which a new block starts. At this size, 45 MB open in 56 to 94 ms, and one edit stays cheap. */
export const BLOCK_BYTES = 16 * 1024;
const NONE: ReadonlySet<string> = new Set();

/** A part of a conversation's text. */
export interface Piece {
  /** The JSON of the messages, joined by commas. Joined on each access, so that a long conversation isn't in memory twice. */
  readonly text: string;
  mids: string[];
  /** Frees the text, which is empty afterwards. */
  free(): void;
}

/** Parses the text of a block. */
export function parseBlock(text: string): Message[] {
  return JSON.parse(`[${text}]`);
}

/** Returns the JSON of each message. Yields to other work if there are many. */
export async function readTextsOfMany(messages: Message[]): Promise<string[]> {
  const texts: string[] = [];
  for (const message of messages) {
    texts.push(JSON.stringify(message));
    if (isTickUsedUp()) await yieldToEventLoop();
  }
  return texts;
}

/** Returns the JSON of each message. */
export function readTexts(messages: Message[]): string[] {
  return messages.map((message) => JSON.stringify(message));
}

/** Creates a piece of messages. It owns the array of texts. */
export function getPiece(texts: string[], mids: string[]): Piece {
  return {
    mids,
    get text() {
      return texts.join(",");
    },
    free() {
      texts.length = 0;
    },
  };
}

/**
 * Divides messages into pieces of at most a block's size. A larger message has its own piece.
 *
 * @param allTexts The result of `readTexts`, if the caller has it.
 * @param branches Messages after which a new piece starts.
 */
export function pack(
  messages: Message[],
  allTexts = readTexts(messages),
  branches: ReadonlySet<string> = NONE,
): Piece[] {
  const pieces: Piece[] = [];
  let texts: string[] = [];
  let mids: string[] = [];
  let size = 0;
  const flush = () => {
    if (mids.length > 0) pieces.push(getPiece(texts, mids));
    [texts, mids, size] = [[], [], 0];
  };
  messages.forEach((message, index) => {
    const text = allTexts[index]!;
    // UTF-16 units are close enough to bytes for a target size.
    if (size + text.length > BLOCK_BYTES) flush();
    texts.push(text);
    mids.push(message.id);
    size += text.length + 1;
    if (branches.has(message.id)) flush();
  });
  flush();
  return pieces;
}
