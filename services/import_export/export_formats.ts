/** Export formats. A conversation as a file: JSON (complete), Markdown (for reading), SillyTavern's JSONL (for other programs). */
import { isJsonObject } from "../json/type_guards.ts";
import { getContentText, type Message } from "../conversations/message.ts";
import type { Variant } from "../conversations/variants.ts";

/** First file of an export; identifies the format. */
export const EXPORT_MARK = "parlor-export.json";
/**
 * Version of the export format. 1 had message variants inline and no voices or settings; 2 had no continuations of
 * inactive versions; 3 had no proposals, no gallery, and no times of notes, lorebooks and presets.
 */
export const EXPORT_FORMAT = 4;

/** Export formats of a conversation. */
export const CHAT_FORMATS = ["markdown", "json", "tavern"] as const;
/** One format. */
export type ChatFormat = typeof CHAT_FORMATS[number];

/** A conversation with all variants. */
export interface WholeConversation {
  id: string;
  title: string;
  created_at: string;
  messages: (Message & { variants?: Variant[] })[];
  [field: string]: unknown;
}

/** Names to show with messages. */
export interface SpeakerNames {
  user: string;
  /** The first character, or the model if there is none. */
  assistant: string;
  /** By id. */
  characters: ReadonlyMap<string, string>;
}

/** Returns the conversation as Markdown, without hidden messages. */
export function toMarkdown(conversation: WholeConversation, names: SpeakerNames): string {
  const title = conversation.title.replace(/\s+/g, " ").trim();
  const parts = title === "" ? [] : [`# ${title}`];
  for (const message of conversation.messages) {
    if (message.hidden === true) continue;
    const text = [getContentText(message.content), ...describeToolCalls(message), describeSources(message)].filter((
      one,
    ) => one !== "").join(
      "\n\n",
    );
    const media = (Array.isArray(message.content) ? message.content : []).flatMap(({ type }) =>
      type === "image_url" ? ["*(a picture)*"] : type === "audio" ? ["*(a recording)*"] : []
    );
    const time = message.created_at.slice(0, 16).replace("T", " ");
    parts.push(`**${getSpeakerName(message, names)}** · ${time}`, ...(text === "" ? [] : [text]), ...media);
  }
  return `${parts.join("\n\n")}\n`;
}

/** Returns the conversation as SillyTavern's JSONL, each message with its swipes. */
export function toTavern(conversation: WholeConversation, names: SpeakerNames): string {
  const { created_at, note, variables } = conversation;
  const { text, depth, role, position, interval } = (note ?? {}) as {
    text?: string;
    depth?: number;
    role?: string;
    position?: string;
    interval?: number;
  };
  const chat_metadata = text === undefined ? { variables } : {
    variables,
    note_prompt: text,
    note_depth: depth ?? 0,
    note_position: position === "after_main" ? 0 : position === "before_main" ? 2 : 1,
    note_interval: interval ?? 1,
    note_role: Math.max(0, ["system", "user", "assistant"].indexOf(role ?? "system")),
  };
  const header = { user_name: names.user, character_name: names.assistant, create_date: created_at, chat_metadata };
  // SillyTavern stores tool calls in other files. A message without text would be an empty reply.
  const shown = conversation.messages.filter((message) =>
    message.role !== "tool" && (message.tool_calls === undefined || getContentText(message.content) !== "")
  );
  const lines = shown.map((message) => ({
    name: getSpeakerName(message, names),
    is_user: message.role === "user",
    is_system: message.hidden === true,
    send_date: message.created_at,
    mes: getContentText(message.content),
    extra: { ...getExtra(message), ...(message.role === "system" && { type: "narrator" }) },
    ...((message.variants?.length ?? 1) > 1 && getSwipes(message)),
  }));
  return [header, ...lines].map((line) => `${JSON.stringify(line)}\n`).join("");
}

function getSwipes({ variants = [], active_variant }: WholeConversation["messages"][number]) {
  return {
    swipes: variants.map(({ content }) => getContentText(content)),
    swipe_id: active_variant,
    swipe_info: variants.map((variant) => ({ send_date: variant.created_at, extra: getExtra(variant) })),
  };
}

function getExtra({ reasoning, model }: { reasoning?: string; model?: string }) {
  return { ...(reasoning !== undefined && { reasoning }), ...(model !== undefined && { model }) };
}

/** Describes the tool calls in a message, each as a paragraph. */
function describeToolCalls({ tool_calls: calls }: Message): string[] {
  if (!Array.isArray(calls)) return [];
  return calls.filter(isJsonObject).map((call) => {
    const { name, arguments: args } = isJsonObject(call.function) ? call.function : {};
    const state = typeof call.state === "string" ? ` (${call.state})` : "";
    return `*Called ${name}${state}:*\n\n${toCodeBlock(String(args ?? ""))}`;
  });
}

/** Lists the sources of a reply. Only web addresses become links. */
function describeSources({ sources }: Message): string {
  if (!Array.isArray(sources)) return "";
  return sources.map(({ n, url, title, quote }) => {
    const name = (title ?? url ?? quote ?? "").replace(/\s+/g, " ").replace(/[\\[\]]/g, "\\$&");
    return url !== undefined && /^https?:\/\/[^\s<>()]+$/i.test(url) ? `${n}. [${name}](${url})` : `${n}. ${name}`;
  }).join("\n");
}

/** Creates a code block. The fence has more backticks than the text has in a row. */
function toCodeBlock(text: string): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

function getSpeakerName(message: Message, { user, assistant, characters }: SpeakerNames): string {
  if (message.role === "user") return user;
  if (message.role === "tool") return "Tool";
  if (message.role === "system") return "System";
  return characters.get(String(message.character_id)) ??
    (typeof message.name === "string" && message.name !== "" ? message.name : assistant);
}
