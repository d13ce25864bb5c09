/** Chooses what a prompt has of its documents, and where it's sent. */
import type { DocumentUse } from "../documents/document.ts";
import { splitContent } from "../llm/token_count.ts";
import { chooseDocuments, type ChosenDocuments, type DocumentReader, type WantedDocument } from "./document_choice.ts";
import type { PromptBlock } from "./prompt_blocks.ts";
import { type Counted, type CountedBlocks, toMessage } from "./prompt_messages.ts";
import type { PromptMessage } from "./prompt.ts";
import type { TokenCounter } from "./token_counter.ts";

/** Messages before the question that the search for passages knows. */
const QUERY_CONTEXT = 2;
/** Documents come before other blocks of the same depth. */
export const DOCUMENT_ORDER = -2_000_000;

/** The tokens that documents can have, and the messages that they belong to. */
export interface DocumentRoom {
  /** Newest first. */
  read: readonly PromptMessage[];
  model: string;
  /** Tokens for documents. */
  budget: number;
  /** Tokens for documents if the history has only its newest message. */
  maxBudget: number;
}

/** The documents of prompts. */
export class PromptDocuments {
  readonly #counter: TokenCounter;
  readonly #open: (() => Promise<DocumentReader>) | undefined;

  /** @param open Opens the documents, for prompts that have some. */
  constructor(counter: TokenCounter, open?: () => Promise<DocumentReader>) {
    this.#counter = counter;
    this.#open = open;
  }

  /**
   * Chooses what is sent of documents.
   *
   * @param options.waits False for previews, which don't wait for documents that are being read.
   * @throws The reason of `signal` if aborted.
   */
  async choose(
    wanted: readonly WantedDocument[],
    { read, model, budget, maxBudget }: DocumentRoom,
    options: { waits: boolean; signal: AbortSignal },
  ): Promise<ChosenDocuments> {
    if (this.#open === undefined) return { fixed: [], sent: [] };
    const asked = read.findIndex(({ message }) => message.role === "user");
    const textOf = (message: PromptMessage | undefined) =>
      message === undefined ? "" : splitContent(message.message).text;
    const input = {
      wanted,
      budget,
      maxBudget,
      query: {
        text: textOf(read[Math.max(0, asked)]),
        context: read.slice(Math.max(0, asked) + 1, asked + 1 + QUERY_CONTEXT).map(textOf).join("\n"),
      },
      estimate: (text: string) => this.#counter.estimate({ role: "system", content: text }, model),
      tokenRatio: this.#counter.ratioOf(model),
    };
    return await chooseDocuments(await this.#open(), input, options);
  }

  /**
   * Inserts documents where they keep the start of the prompt the same: those always at hand before the history, those of a
   * message before it, passages before the newest message of the user.
   */
  insert(
    { leading, inserted }: Pick<CountedBlocks, "leading" | "inserted">,
    { fixed, passages }: ChosenDocuments,
    { read, model, continuesLast }: Pick<DocumentRoom, "read" | "model"> & { continuesLast?: boolean },
  ): void {
    const count = (text: string): Counted => {
      const block: PromptBlock = { part: "documents", role: "system", text };
      return { ...block, tokens: this.#counter.estimate(toMessage(block), model) };
    };
    const insert = (text: string, index: number) => {
      // The message that is continued isn't part of the history.
      const depth = index < 0 ? Infinity : index + (continuesLast ? 0 : 1);
      inserted.push({ ...count(text), depth, order: DOCUMENT_ORDER });
    };
    const first = leading.findIndex(({ part }) => part === "chat_begins" || part === "summary");
    const atHand = fixed.filter(({ messageId }) => messageId === undefined).map(({ text }) => count(text));
    leading.splice(first < 0 ? leading.length : first, 0, ...atHand);
    for (const { text, messageId } of fixed) {
      if (messageId !== undefined) insert(text, read.findIndex((message) => keyOf(message) === messageId));
    }
    if (passages !== undefined) insert(passages, read.findIndex(({ message }) => message.role === "user"));
  }
}

/** Identifies a message of the history, also one that isn't stored yet. */
export function keyOf({ id }: PromptMessage): string {
  return id ?? "";
}

/**
 * Lists the documents of a prompt, oldest first, each once. The first mention decides where it's sent, the last one how
 * much of it.
 */
export function findWantedDocuments(
  atHand: readonly DocumentUse[],
  read: readonly PromptMessage[],
  earlier: readonly WantedDocument[],
): WantedDocument[] {
  const inMessages = read.toReversed().flatMap((message) =>
    (message.documents ?? []).map((use) => ({ use, messageId: keyOf(message) }))
  );
  const wanted = new Map<string, WantedDocument>();
  for (const one of [...atHand.map((use) => ({ use })), ...earlier.toReversed(), ...inMessages]) {
    wanted.set(one.use.id, { ...wanted.get(one.use.id) ?? one, use: one.use });
  }
  return [...wanted.values()];
}
