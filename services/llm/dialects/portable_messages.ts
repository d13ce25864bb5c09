/**
 * Adapts the messages of a chat to another server in mid-conversation: IDs of tool calls, roles, empty texts, and what only
 * the server that wrote a message understands (docs/protocols/llm.md, "Calls and results").
 */
import { createHash } from "node:crypto";
import { asObject, isJsonObject } from "../../json/type_guards.ts";
import type { ChatMessage, ContentPart } from "../chat_event.ts";
import type { CallIdRule, Dialect, DialectName } from "./dialect.ts";

/** Names of functions that OpenAI accepts. */
const VALID_NAME = /^[a-zA-Z0-9_-]{1,64}$/;
/** Servers whose API only has the roles system, user, assistant and tool. */
const WITHOUT_DEVELOPER: readonly DialectName[] = ["mistral", "deepseek", "groq", "gemini", "ollama", "anthropic"];
/** Servers whose messages have no names: the API has no such field, or refuses it. */
const WITHOUT_NAMES: readonly DialectName[] = ["anthropic", "gemini", "mistral", "ollama"];
/** Hosted services. Some refuse an empty text next to calls; all accept none. */
const NO_EMPTY_TEXT: readonly DialectName[] = [
  ...["openai", "azure", "anthropic", "gemini", "mistral", "deepseek", "openrouter", "groq"] as const,
];
/** Accepted by Gemini for calls that another model made. @see https://ai.google.dev/gemini-api/docs/thought-signatures */
const FOREIGN_SIGNATURE = { google: { thought_signature: "skip_thought_signature_validator" } };
/** Sent if a reply ended right after the result of a tool, because Mistral refuses a user message there. */
const ENDED = "(The reply ended here.)";
/** Stands for a picture in a reply. */
const PICTURE = "[a picture]";
/** Stands for the sound of a reply without a transcript. */
const RECORDING = "[a recording]";
/** How long before its end a sound that the server knows isn't used anymore: the request takes time. */
const MARGIN_MS = 60_000;
/** Servers that know the sounds of their replies. @see https://platform.openai.com/docs/guides/audio#multi-turn-conversations */
const KNOWS_SOUNDS: readonly DialectName[] = ["openai", "azure"];
/** Introduces pictures of earlier replies. */
const MOVED = "[The pictures of your last reply:]";
/** Formats of reasoning that OpenRouter passes on, by the vendor in the name of the model. */
const FORMATS: Record<string, string> = {
  anthropic: "anthropic-claude",
  openai: "openai-responses",
  google: "google-gemini",
  "x-ai": "xai-responses",
};

/** Where messages are sent. */
interface Destination {
  /** The model's name at OpenRouter has its vendor, which decides on reasoning of other vendors. */
  model?: string;
  /** False if the API has no names of messages, though the dialect does. */
  takesNames?: boolean;
  /** Sounds of its own replies aren't sent back: the server knows them. */
  connectionId?: string;
}

/** Returns the messages in the form that the server accepts. Stored messages stay as they are. */
export function fitMessages(
  dialect: Dialect,
  messages: readonly ChatMessage[],
  { model = "", connectionId, takesNames = !WITHOUT_NAMES.includes(dialect.name) }: Destination = {},
): ChatMessage[] {
  const { name, callIds } = dialect;
  const ids = new CallIds(callIds);
  const fitted: ChatMessage[] = [];
  for (const message of moveImages(dialect, messages.map((one) => replaceSound(dialect, one, connectionId)))) {
    const role = WITHOUT_DEVELOPER.includes(name) && message.role === "developer" ? "system" : message.role;
    const { tool_calls: calls } = message;
    let next: ChatMessage = role === message.role ? message : { ...message, role };
    if (!takesNames) next = putNameInText(next);
    if (Array.isArray(calls)) {
      if (NO_EMPTY_TEXT.includes(name) && isBlank(next.content)) next = { ...next, content: null };
      else next = { ...next };
      ids.startRound();
      next.tool_calls = calls.map((call, n) => isJsonObject(call) ? fitCall(name, call, ids, n === 0) : call);
      const { reasoning_details: details } = next;
      if (Array.isArray(details) && name === "openrouter") {
        next.reasoning_details = details.filter((detail) => isFromVendor(detail, model));
      }
    } else if (role === "tool" && typeof message.tool_call_id === "string") {
      next = { ...next, tool_call_id: ids.find(message.tool_call_id) };
    }
    if (name === "mistral") addMistralMessage(fitted, next);
    else fitted.push(next);
  }
  return fitted;
}

/** Puts the name of a message in front of its text. Results of tools have the name of the tool, which stays. */
export function putNameInText(message: ChatMessage): ChatMessage {
  const { name, ...rest } = message;
  if (typeof name !== "string" || message.role === "tool") return message;
  const isTurn = message.role === "user" || message.role === "assistant";
  return isTurn && name !== "" && rest.content ? { ...rest, content: prefixName(rest.content, name) } : rest;
}

/** Returns content with a name in front of its text. */
export function prefixName(content: string | ContentPart[], name: string): string | ContentPart[] {
  if (typeof content === "string") return `${name}: ${content}`;
  const index = content.findIndex((part) => typeof part.text === "string");
  if (index < 0) return [{ type: "text", text: `${name}:` }, ...content];
  return content.map((part, n) => n === index ? { ...part, text: `${name}: ${part.text}` } : part);
}

/**
 * Moves pictures of replies to the next user message: no documented API takes them in messages of the assistant.
 * Where none follows, a note stands for them.
 */
function moveImages({ imageTypes }: Dialect, messages: readonly ChatMessage[]): ChatMessage[] {
  let moved: ContentPart[] = [];
  return messages.map((message, index) => {
    const { role, content } = message;
    if (role === "assistant" && Array.isArray(content) && content.some(isImage)) {
      const canMove = imageTypes.length > 0 && messages.slice(index).some((later) => later.role === "user");
      if (canMove) moved.push(...content.filter(isImage));
      const text = content.map((part) => isImage(part) ? PICTURE : String(part.text ?? "")).join("\n");
      return { ...message, content: text };
    }
    if (role !== "user" || moved.length === 0) return message;
    const own = typeof content === "string" ? [{ type: "text", text: content }] : content ?? [];
    const parts = [{ type: "text", text: MOVED }, ...moved, ...own];
    moved = [];
    return { ...message, content: parts };
  });
}

/** Replaces the sound of a reply by its ID where the server knows it, and by its transcript elsewhere. */
function replaceSound({ name }: Dialect, message: ChatMessage, connectionId: string | undefined): ChatMessage {
  const { role, content } = message;
  if (!Array.isArray(content)) return message;
  const sound = content.find(({ type }) => type === "audio");
  if (sound === undefined) return message;
  const { id, expires_at: expires, connection_id: origin } = asObject(sound.audio);
  const isKnown = KNOWS_SOUNDS.includes(name) && role === "assistant" && message.tool_calls === undefined &&
    origin === connectionId && typeof expires === "number" && expires * 1000 > Date.now() + MARGIN_MS;
  if (isKnown && typeof id === "string") return { ...message, content: null, audio: { id } };
  const others = content.filter((part) => part !== sound && part.type !== "audio");
  if (others.some(isImage)) return { ...message, content: others };
  const text = others.map((part) => String(part.text ?? "")).join("\n");
  return { ...message, content: text.trim() === "" ? RECORDING : text };
}

function isImage({ type }: ContentPart): boolean {
  return type === "image_url";
}

/** Adapts one call. */
function fitCall(
  dialect: DialectName,
  { extra_content: extra, ...call }: Record<string, unknown>,
  ids: CallIds,
  isFirst: boolean,
): Record<string, unknown> {
  const fitted: Record<string, unknown> = { ...call, ...(typeof call.id === "string" && { id: ids.add(call.id) }) };
  const named = call.function;
  if (isJsonObject(named) && typeof named.name === "string" && !VALID_NAME.test(named.name)) {
    fitted.function = { ...named, name: named.name.replace(/[^a-zA-Z0-9_-]+/g, "_").slice(0, 64) || "_" };
  }
  const content = fitExtraContent(dialect, extra, isFirst);
  return content === undefined ? fitted : { ...fitted, extra_content: content };
}

/** Returns what belongs to Gemini's calls. OpenAI and others refuse the field; servers that aren't known may be Gemini's. */
function fitExtraContent(dialect: DialectName, extra: unknown, isFirst: boolean): unknown {
  if (dialect === "generic" || dialect === "openrouter") return extra;
  if (dialect !== "gemini") return undefined;
  if (isJsonObject(extra) && isJsonObject(extra.google)) return { google: extra.google };
  return isFirst ? FOREIGN_SIGNATURE : undefined;
}

/** Returns whether a block of reasoning may be sent to a model: not if it's signed by another vendor. */
function isFromVendor(detail: unknown, model: string): boolean {
  if (!isJsonObject(detail) || typeof detail.format !== "string") return true;
  const vendor = /^~?([^/]+)\//.exec(model)?.[1] ?? "";
  const known = Object.values(FORMATS).some((format) => String(detail.format).startsWith(format));
  return !known || detail.format.startsWith(FORMATS[vendor] ?? "\0");
}

/**
 * Adds a message for Mistral, which refuses system messages after the start, empty replies, and a user message right after
 * the result of a tool.
 *
 * @see https://docs.mistral.ai/capabilities/function_calling
 */
function addMistralMessage(messages: ChatMessage[], message: ChatMessage): void {
  const last = messages.at(-1);
  const isLate = message.role === "system" && messages.some(({ role }) => role !== "system");
  const next = isLate ? { ...message, role: "user" } : message;
  if (next.role === "assistant" && next.tool_calls === undefined && isBlank(next.content)) return;
  if (last?.role === "tool" && next.role === "user") messages.push({ role: "assistant", content: ENDED });
  messages.push(next);
}

function isBlank(content: ChatMessage["content"]): boolean {
  if (typeof content === "string") return content.trim() === "";
  return content === null || content === undefined ||
    content.every((part) => part.type === "text" && isBlank(String(part.text ?? "")));
}

/** Replaces IDs that a server refuses. The same ID gets the same replacement in every request. */
class CallIds {
  readonly #rule: CallIdRule;
  /** IDs of the current round, as they came → as they are sent. */
  readonly #round = new Map<string, string>();
  readonly #sent = new Set<string>();

  constructor(rule: CallIdRule) {
    this.#rule = rule;
  }

  /** Starts the calls of another message. The same ID may occur again. */
  startRound(): void {
    this.#round.clear();
  }

  /** Returns the ID to send for a call. */
  add(id: string): string {
    let sent = this.#rule.pattern.test(id) ? id : hashId(id, this.#rule.length);
    for (let n = 2; this.#sent.has(sent); n++) sent = hashId(`${id} ${n}`, this.#rule.length);
    this.#sent.add(sent);
    this.#round.set(id, sent);
    return sent;
  }

  /** Returns the ID to send for a result. */
  find(id: string): string {
    return this.#round.get(id) ?? (this.#rule.pattern.test(id) ? id : hashId(id, this.#rule.length));
  }
}

/** Returns a hash of letters and digits. */
function hashId(id: string, length: number): string {
  return createHash("sha256").update(id).digest("base64").replace(/[^a-zA-Z0-9]/g, "").slice(0, length);
}
