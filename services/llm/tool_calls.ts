/** Puts the pieces of streamed tool calls together. */
import { isJsonObject } from "../json/type_guards.ts";

/** One call as it stands so far. */
export interface ToolCall {
  index: number;
  id?: string;
  type: string;
  function: { name: string; arguments: string };
}

/** More calls than this are no answer to anybody's question. */
const MAX_INDEX = 1_000;

/**
 * Gathers the tool calls of one answer: merged by `index`, fragments of arguments joined, empty names ignored.
 *
 * @see OpenAI API, "Streaming tool calls"; some servers repeat an empty name in later fragments.
 */
export class ToolCalls {
  readonly #calls = new Map<number, ToolCall>();

  /** Adds what one event brought; what is no piece of a call is passed over. */
  add(pieces: readonly unknown[]): void {
    for (const piece of pieces) if (isJsonObject(piece)) this.#addPiece(piece);
  }

  get isEmpty(): boolean {
    return this.#calls.size === 0;
  }

  /** Gives a copy of the calls, by index. */
  all(): ToolCall[] {
    const calls = [...this.#calls.values()].sort((a, b) => a.index - b.index);
    return calls.map((call) => ({ ...call, function: { ...call.function } }));
  }

  #addPiece(piece: Record<string, unknown>): void {
    const index = piece.index ?? Math.max(-1, ...this.#calls.keys()) + 1;
    if (typeof index !== "number" || !Number.isInteger(index) || index < 0 || index > MAX_INDEX) return;
    let call = this.#calls.get(index);
    if (call === undefined) {
      this.#calls.set(index, call = { index, type: "function", function: { name: "", arguments: "" } });
    }
    if (typeof piece.id === "string" && piece.id !== "") call.id = piece.id;
    if (!isJsonObject(piece.function)) return;
    const { name, arguments: fragment } = piece.function;
    if (typeof name === "string" && name !== "") call.function.name = name;
    if (typeof fragment === "string") call.function.arguments += fragment;
  }
}
