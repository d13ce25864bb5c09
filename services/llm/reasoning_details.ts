/**
 * Blocks of reasoning that a server wants back unchanged beside the results of tools: signed text, and reasoning that only the
 * server can read.
 *
 * @see https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks
 */
import { isJsonObject } from "../json/type_guards.ts";

/** One block, as OpenRouter writes it. */
export interface ReasoningDetail {
  type: "reasoning.text" | "reasoning.encrypted" | "reasoning.summary";
  /** Whose blocks these are: `"anthropic-claude-v1"`. */
  format?: string;
  text?: string;
  signature?: string;
  data?: string;
  [more: string]: unknown;
}

/** The format of blocks that come from Anthropic. */
export const ANTHROPIC_FORMAT = "anthropic-claude-v1";

/** Fields that arrive in pieces. */
const TEXT_FIELDS = ["text", "summary", "data"];

/** Collects the blocks of one reply. Pieces with the same `index` and type are one block. */
export class ReasoningDetails {
  readonly #blocks: Record<string, unknown>[] = [];

  /** Adds the blocks of one event. Skips anything that isn't one. */
  add(details: readonly unknown[]): void {
    for (const detail of details) if (isJsonObject(detail)) this.#addDetail(detail);
  }

  get isEmpty(): boolean {
    return this.#blocks.length === 0;
  }

  /** Returns a copy of the blocks, in their order. */
  all(): Record<string, unknown>[] {
    return structuredClone(this.#blocks);
  }

  #addDetail(detail: Record<string, unknown>): void {
    const last = this.#blocks.at(-1);
    const isSame = last !== undefined && typeof detail.index === "number" && last.index === detail.index &&
      last.type === detail.type;
    if (!isSame) {
      this.#blocks.push({ ...detail });
      return;
    }
    for (const [name, value] of Object.entries(detail)) {
      const before = last[name];
      const isPiece = TEXT_FIELDS.includes(name) && typeof before === "string" && typeof value === "string";
      if (isPiece) last[name] = before + value;
      else if (value !== null && value !== undefined) last[name] = value;
    }
  }
}
