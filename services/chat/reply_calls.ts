/** The calls of tools in a reply, as clients follow them. */
import type { ToolCallState } from "../tools/tool_call_store.ts";

/** A call as clients see it. In the form of the API. */
export interface ToolCallJson {
  id: string;
  /** The name that the model used. */
  name: string;
  /** A JSON object as text. */
  arguments: string;
  state: ToolCallState;
  /** The result as the model sees it. */
  result?: string;
  /** Absent, like the next two, for a name that no tool has. */
  server_id?: string;
  server_name?: string;
  tool_name?: string;
  /** What the server says of the tool's effects. */
  hints?: { readOnly?: boolean; destructive?: boolean };
  decided_by?: string;
  /** How long the tool ran. */
  duration_ms?: number;
  /** The message with the call. */
  message_id: string;
}

/** A change of a call, as a client gets it. */
export interface ToolCallUpdate {
  call: ToolCallJson;
  /** Number of the call in the reply, from 0. */
  index: number;
  /** True if the client hasn't seen the call. */
  isNew: boolean;
}

interface Entry {
  call: ToolCallJson;
  /** Lengths of the text before the call. */
  textLength: number;
  reasoningLength: number;
  added: number;
  changed: number;
}

/** A position in the text of a reply. */
interface TextPosition {
  textLength: number;
  reasoningLength: number;
}

/** Collects calls and their changes. Each change has a number, so that clients get what they haven't seen. */
export class ReplyCalls {
  readonly #entries = new Map<string, Entry>();
  #changes = 0;

  /** Number of the last change. */
  get changes(): number {
    return this.#changes;
  }

  /** Returns all calls. */
  all(): ToolCallJson[] {
    return [...this.#entries.values()].map(({ call }) => call);
  }

  /** Adds a call behind the text so far, or changes it. */
  set(call: ToolCallJson, { textLength, reasoningLength }: TextPosition): void {
    const before = this.#entries.get(call.id);
    this.#changes++;
    if (before !== undefined) Object.assign(before, { call, changed: this.#changes });
    else {
      const [added, changed] = [this.#changes, this.#changes];
      this.#entries.set(call.id, { call, textLength, reasoningLength, added, changed });
    }
  }

  /**
   * Returns what a client hasn't seen of the calls behind the text that it has, and the number of the last change of them. Calls
   * further on are newer, because a round begins when all calls before it have ended.
   */
  since(seen: number, position: TextPosition): { updates: ToolCallUpdate[]; last: number } {
    const updates: ToolCallUpdate[] = [];
    let last = seen;
    for (const [index, { call, added, changed, ...start }] of [...this.#entries.values()].entries()) {
      if (changed <= seen || !isBefore(start, position)) continue;
      updates.push({ call, index, isNew: added > seen });
      last = Math.max(last, changed);
    }
    return { updates, last };
  }

  /** Returns the position of the first calls that a client hasn't seen. Text behind it comes after them. */
  nextUnseen(seen: number): TextPosition | undefined {
    return [...this.#entries.values()].find(({ added }) => added > seen);
  }
}

function isBefore(entry: TextPosition, { textLength, reasoningLength }: TextPosition): boolean {
  return entry.textLength <= textLength && entry.reasoningLength <= reasoningLength;
}
