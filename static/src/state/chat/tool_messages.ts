/** Finds the messages of tool calls and their results. They are shown as part of their reply. */
import type { ToolCall } from "../../api/tools.ts";
import type { Message } from "../../api/types.ts";
import { getContentText, isLocalImage, listImageUrls } from "./message_text.ts";
import type { PlacedCall } from "./reply_stream.ts";

/** The messages of tools in a chat. */
export interface ToolMessages {
  /** Ids of messages that belong to another one. */
  hidden: ReadonlySet<string>;
  /** By the id of a reply: the messages that it wrote before its last one, and the results between them. */
  rounds: ReadonlyMap<string, readonly Message[]>;
  /** By the id of a message with calls that a client answered: the results. */
  results: ReadonlyMap<string, readonly Message[]>;
}

const NONE: ToolMessages = { hidden: new Set(), rounds: new Map(), results: new Map() };

/** Finds the messages of tools in one pass. */
export function findToolMessages(items: readonly Message[]): ToolMessages {
  if (!items.some(({ role, reply_id }) => role === "tool" || reply_id)) return NONE;
  const ids = new Set(items.map(({ id }) => id));
  const hidden = new Set<string>();
  const rounds = new Map<string, Message[]>();
  const results = new Map<string, Message[]>();
  let asking: Message | undefined;
  for (const message of items) {
    const { id, role, reply_id: replyId } = message;
    if (replyId && ids.has(replyId)) {
      hidden.add(id);
      add(rounds, replyId, message);
    } else if (role !== "tool") {
      asking = role === "assistant" && message.tool_calls?.length ? message : undefined;
    } else if (asking?.tool_calls?.some((call) => call.id === message.tool_call_id)) {
      hidden.add(id);
      add(results, asking.id, message);
    }
  }
  return { hidden, rounds, results };
}

function add(map: Map<string, Message[]>, id: string, message: Message): void {
  const list = map.get(id);
  if (list) list.push(message);
  else map.set(id, [message]);
}

/** A call as it is shown. */
export interface ShownCall extends ToolCall {
  /** URLs of images in the result. */
  images?: string[];
}

/** A part of a reply: text, and the calls after it. */
export interface ReplyRound {
  text: string;
  reasoning: string;
  calls: ShownCall[];
}

/** Reads rounds from messages: calls, each with its result. A result without its call is a call of its own. */
export function readRounds(messages: readonly Message[]): ReplyRound[] {
  const rounds: ReplyRound[] = [];
  const open = new Map<string, ShownCall>();
  for (const message of messages) {
    if (message.role === "tool") {
      const call = open.get(message.tool_call_id ?? "");
      const result = {
        result: getContentText(message.content),
        images: listImageUrls(message).filter(isLocalImage),
      } satisfies Partial<ShownCall>;
      if (call) Object.assign(call, result);
      else {
        const stray: ShownCall = { id: message.tool_call_id ?? message.id, name: "", arguments: "", ...result };
        rounds.push({ text: "", reasoning: "", calls: [stray] });
      }
      continue;
    }
    const calls = (message.tool_calls ?? []).map((stored): ToolCall => {
      const { function: called, type: _, id, ...fields } = stored;
      const args = called?.arguments;
      const call = {
        ...fields as Partial<ToolCall>,
        id: id ?? "",
        name: called?.name ?? "",
        arguments: typeof args === "string" ? args : JSON.stringify(args ?? {}),
      } satisfies ShownCall;
      open.set(call.id, call);
      return call;
    });
    rounds.push({ text: getContentText(message.content), reasoning: message.reasoning ?? "", calls });
  }
  return rounds;
}

/** Splits the text of a running reply at its calls. Omits the text after the last call. */
export function splitAtCalls(calls: readonly PlacedCall[], text: string, reasoning: string): ReplyRound[] {
  const rounds: ReplyRound[] = [];
  let [textLength, reasoningLength] = [0, 0];
  for (const placed of calls) {
    const round = rounds.at(-1);
    if (round && placed.textLength === textLength && placed.reasoningLength === reasoningLength) {
      round.calls.push(placed.call);
      continue;
    }
    rounds.push({
      text: text.slice(textLength, placed.textLength),
      reasoning: reasoning.slice(reasoningLength, placed.reasoningLength),
      calls: [placed.call],
    });
    ({ textLength, reasoningLength } = placed);
  }
  return rounds;
}

/** Writes the rounds of a reply as messages, until those of the server are loaded. */
export function writeRounds({ id: replyId, created_at }: Message, rounds: readonly ReplyRound[]): Message[] {
  return rounds.flatMap(({ text, reasoning, calls }, n) => {
    const asking: Message = {
      id: `${replyId}/${n}`,
      role: "assistant",
      reply_id: replyId,
      content: text,
      reasoning: reasoning || undefined,
      status: "complete",
      created_at,
      tool_calls: calls.map(({ name, arguments: args, result: _, images: __, ...call }) => ({
        ...call,
        type: "function",
        function: { name, arguments: args },
      })),
    };
    const results = calls.filter(({ result }) => result !== undefined).map((call): Message => ({
      id: `${replyId}/${n}/${call.id}`,
      role: "tool",
      reply_id: replyId,
      tool_call_id: call.id,
      content: call.result!,
      status: "complete",
      created_at,
    }));
    return [asking, ...results];
  });
}
