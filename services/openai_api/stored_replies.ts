/** Replies of stored conversations as responses of the Responses API, under the ID `resp_<conversation>_<message>`. */
import { getContentText, type Message } from "../conversations/message.ts";
import { asObject } from "../json/type_guards.ts";
import type { KeptItem, ResponseItem } from "./response_input.ts";
import type { ResponseObject, ResponseStatus, ResponseUsage } from "./response_output.ts";

/** Reads the messages of a conversation, with the results of tools. `undefined` if there is none. */
export type ReadMessages = (conversationId: string) => Promise<Message[] | undefined>;

/** A reply, and everything before it. */
export interface StoredReply {
  id: string;
  /** Ends with the reply. */
  messages: Message[];
}

const PREFIX = "resp_";

/** Finds a reply. IDs may contain `_` themselves, so every place where one could end is tried. */
export async function findStoredReply(read: ReadMessages, id: string): Promise<StoredReply | undefined> {
  if (!id.startsWith(PREFIX)) return undefined;
  for (let at = id.indexOf("_", PREFIX.length); at > 0; at = id.indexOf("_", at + 1)) {
    const messages = await read(id.slice(PREFIX.length, at));
    const messageId = id.slice(at + 1);
    const end = messages?.findIndex((message) => message.role === "assistant" && message.id === messageId) ?? -1;
    if (end >= 0) return { id, messages: messages!.slice(0, end + 1) };
  }
  return undefined;
}

/** Returns the items of the conversation up to a reply. */
export function toContextItems({ messages }: StoredReply): KeptItem[] {
  return messages.filter(({ hidden }) => hidden !== true).flatMap(toItems).map((item) => ({ item }));
}

function toItems(message: Message): ResponseItem[] {
  const { role, content } = message;
  if (role === "assistant") return toOutput(message);
  if (role === "tool") {
    return [{ type: "function_call_output", call_id: message.tool_call_id, output: getContentText(content) }];
  }
  if (typeof content === "string") return [{ type: "message", role, content }];
  const parts = content.flatMap((part): Record<string, unknown>[] => {
    if (typeof part.text === "string") return [{ type: "input_text", text: part.text }];
    const { url } = asObject(part.image_url);
    return typeof url === "string" ? [{ type: "input_image", image_url: url }] : [];
  });
  return [{ type: "message", role, content: parts }];
}

/** Returns the items of one message of a reply: its text, and calls of tools. */
function toOutput(message: Message): ResponseItem[] {
  const text = getContentText(message.content);
  const annotations = (Array.isArray(message.sources) ? message.sources : []).map(asObject)
    .filter(({ url }) => typeof url === "string")
    .map(({ url, title }) => ({ type: "url_citation", url, title: title ?? url, start_index: 0, end_index: 0 }));
  const calls = (Array.isArray(message.tool_calls) ? message.tool_calls : []).map(asObject);
  return [
    ...(text === "" ? [] : [{
      type: "message",
      id: `msg_${message.id}`,
      status: message.status === "streaming" ? "in_progress" : "completed",
      role: "assistant",
      content: [{ type: "output_text", text, annotations }],
    }]),
    ...calls.map(({ id, function: named }, n) => ({
      type: "function_call",
      id: `fc_${message.id}_${n}`,
      call_id: id,
      status: "completed",
      name: asObject(named).name,
      arguments: asObject(named).arguments,
    })),
  ];
}

/** Returns what a response object has of a reply. */
export function toStoredResponse(
  { id, messages }: StoredReply,
): Pick<ResponseObject, "id" | "created_at" | "status" | "error" | "incomplete_details" | "output" | "usage"> {
  const reply = messages.at(-1)!;
  const rounds = messages.filter(({ reply_id: owner, role }) => owner === reply.id && role === "assistant");
  const [status, reason] = toStatus(reply);
  const { error } = reply;
  return {
    id,
    created_at: Math.floor(Date.parse(reply.created_at) / 1000),
    status,
    error: status === "failed" ? { code: error?.code ?? "internal", message: error?.message ?? "" } : null,
    incomplete_details: reason === undefined ? null : { reason },
    output: [...rounds, reply].flatMap(toOutput),
    usage: toUsage(asObject(reply.usage)),
  };
}

/** Returns the status, and why a reply is incomplete. */
function toStatus({ status, finish_reason: finish }: Message): [ResponseStatus, string?] {
  if (status === "streaming") return ["in_progress"];
  if (status === "failed") return ["failed"];
  if (finish === "length") return ["incomplete", "max_output_tokens"];
  if (finish === "content_filter") return ["incomplete", "content_filter"];
  return status === "complete" ? ["completed"] : ["incomplete", status];
}

function toUsage({ prompt_tokens: input, completion_tokens: output }: Record<string, unknown>): ResponseUsage | null {
  if (typeof input !== "number" || typeof output !== "number") return null;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
}
