/** What regex scripts make of the messages of a chat: how they are shown, and what an edit saves. */
import { signal } from "@preact/signals";
import { type RegexScriptApi, regexScriptApi, type ScriptedText } from "../../api/regex_scripts.ts";
import type { ApiClient } from "../../api/client.ts";
import type { AttachedRegexScripts, Message } from "../../api/types.ts";
import { LatestRead } from "../app/latest_read.ts";
import { getContentText, splitReasoning } from "./message_text.ts";
import type { OpenChat } from "./open_chat.ts";

/** Changes of these may change which scripts run. */
const KINDS = new Set(["regex_script", "character", "preset", "settings", "connection"]);
/** Texts of one request. */
const MAX_TEXTS = 500;
const MAX_CHARS = 1_000_000;

const displays = new WeakMap<OpenChat, RegexDisplay>();

/** Returns the scripts of a chat. */
export function getRegexDisplay(chat: OpenChat, client: ApiClient): RegexDisplay {
  let display = displays.get(chat);
  if (display === undefined) displays.set(chat, display = new RegexDisplay(chat, regexScriptApi(client)));
  return display;
}

/** The scripts of one chat. */
export class RegexDisplay {
  /** Scripts of its preset and characters that wait for a decision. */
  readonly undecided = signal<readonly AttachedRegexScripts[]>([]);
  /** Names of scripts that were switched off while this chat was shown. */
  readonly switchedOff = signal<readonly string[]>([]);
  readonly #chat: OpenChat;
  readonly #api: RegexScriptApi;
  readonly #latest = new LatestRead();
  readonly #shown = signal<ReadonlyMap<string, string>>(new Map());
  readonly #scripts = signal<{ isActive: boolean; maxDepth: number }>({ isActive: false, maxDepth: 0 });
  /** Counts the states of the scripts; a response for an earlier one is dropped. */
  #state = 0;
  #requested = new Set<string>();

  constructor(chat: OpenChat, api: RegexScriptApi) {
    this.#chat = chat;
    this.#api = api;
  }

  /** Reads which scripts there are. A failure changes nothing: the next change reads again. */
  async load(): Promise<void> {
    if (this.#chat.isNew || this.#chat.isTemporary) return;
    const read = async () => {
      await this.#chat.optionsSettled(); // Another preset is shown as chosen before the server has it.
      return await this.#api.listOf(this.#chat.id);
    };
    await this.#latest.run(read, ({ attached, has_active, max_depth }) => {
      this.#state++;
      this.#requested = new Set();
      this.undecided.value = attached.filter(({ state }) => state === "undecided");
      this.#scripts.value = { isActive: has_active, maxDepth: max_depth };
    }).catch(() => {});
  }

  /** Reads the scripts again if an event may have changed them. */
  onChange(event: { kind: string } | undefined): void {
    if (event === undefined || KINDS.has(event.kind)) void this.load();
  }

  /** Accepts or declines scripts. @throws {ApiError} */
  async decide(hash: string, isAccepted: boolean): Promise<void> {
    await this.#api.decide(hash, isAccepted);
    await this.load();
  }

  /** Returns how a text of a message is shown: as written until the server has answered. */
  find(message: Message, text: string, placement: ScriptedText["placement"]): string {
    if (!this.#scripts.value.isActive || text === "") return text;
    return this.#shown.value.get(getKey(this.#toText(message, text, placement))) ?? text;
  }

  /** Asks for the texts of messages that aren't known yet. Those that still grow are shown as written. */
  async request(messages: readonly Message[]): Promise<void> {
    if (!this.#scripts.value.isActive) return;
    const running = this.#chat.replies.run.value?.messageId;
    const wanted = messages.filter(({ id, role }) => id !== running && (role === "user" || role === "assistant"))
      .flatMap((message) => this.#listTexts(message)).filter((text) => !this.#requested.has(getKey(text)));
    for (const texts of splitTexts(wanted)) await this.#run(texts);
  }

  /** Returns the text that an edit saves. Without the server, that is the text as written. */
  async edit(message: Message, text: string): Promise<string> {
    if (!this.#scripts.peek().isActive) return text;
    const placement = message.role === "user" ? "user_input" : "ai_output";
    const { depth: _, ...scripted } = this.#toText(message, text, placement);
    try {
      return (await this.#api.run(this.#chat.id, "edit", [scripted])).texts[0] ?? text;
    } catch {
      return text;
    }
  }

  async #run(texts: readonly ScriptedText[]): Promise<void> {
    const state = this.#state;
    const requested = this.#requested;
    for (const text of texts) requested.add(getKey(text));
    try {
      const { texts: shown, problems } = await this.#api.run(this.#chat.id, "display", texts);
      const slow = problems.filter(({ problem }) => problem !== "invalid").map(({ name }) => name);
      if (slow.length > 0) this.switchedOff.value = [...new Set([...this.switchedOff.peek(), ...slow])];
      if (state !== this.#state) return;
      // What was shown by earlier scripts stays until now, so that nothing flickers.
      const entries = texts.map((text, n) => {
        const changed = shown[n] ?? text.text;
        return [getKey(text), changed === text.text ? changed : dropStyleSheets(changed)] as const;
      });
      this.#shown.value = new Map([...this.#shown.peek(), ...entries]);
    } catch {
      // They are asked for again with the next message.
      for (const text of texts) requested.delete(getKey(text));
    }
  }

  #listTexts(message: Message): ScriptedText[] {
    if (message.role === "user") return [this.#toText(message, getContentText(message.content), "user_input")];
    const { reasoning: inText, text } = splitReasoning(getContentText(message.content));
    const reasoning = [message.reasoning ?? "", inText].filter((part) => part !== "").join("\n\n");
    return [this.#toText(message, text, "ai_output"), this.#toText(message, reasoning, "reasoning")]
      .filter((each) => each.text !== "");
  }

  #toText(message: Message, text: string, placement: ScriptedText["placement"]): ScriptedText {
    const { character_id } = message;
    const depth = Math.min(this.#countAfter(message.id), this.#scripts.value.maxDepth + 1);
    return { text, placement, depth, ...(typeof character_id === "string" && { character_id }) };
  }

  /** Counts the messages after one, without hidden ones and calls of tools. */
  #countAfter(id: string): number {
    const { maxDepth } = this.#scripts.value;
    const items = this.#chat.pages.items.value;
    let count = 0;
    for (let n = items.length - 1; n >= 0 && count <= maxDepth; n--) {
      const { id: other, hidden, role, tool_calls } = items[n]!;
      if (other === id) return count;
      if (!hidden && role !== "tool" && (tool_calls?.length ?? 0) === 0) count++;
    }
    return count;
  }
}

function getKey({ text, placement, depth, character_id = "" }: ScriptedText): string {
  return `${placement} ${depth} ${character_id} ${text}`;
}

function splitTexts(texts: readonly ScriptedText[]): ScriptedText[][] {
  const parts: ScriptedText[][] = [];
  let chars = Infinity;
  for (const text of texts) {
    if (chars + text.text.length > MAX_CHARS || parts.at(-1)!.length >= MAX_TEXTS) {
      parts.push([]);
      chars = 0;
    }
    chars += text.text.length;
    parts.at(-1)!.push(text);
  }
  return parts;
}

const STYLE_OR_FENCE = /<style(?=[\s>])[^<>]*>|^ {0,3}(`{3,}|~{3,})/gim;
const STYLE_END = /<\/style\s*>/gi;

/** Removes style sheets, which regex scripts for SillyTavern write beside their HTML. Those in code blocks stay. */
export function dropStyleSheets(text: string): string {
  let result = "";
  let from = 0;
  STYLE_OR_FENCE.lastIndex = 0;
  for (let match; (match = STYLE_OR_FENCE.exec(text)) !== null;) {
    const fence = match[1];
    if (fence !== undefined) {
      // To the fence that closes the block, or to the end.
      const close = new RegExp(`^ {0,3}${fence}${fence[0]}*[ \\t]*$`, "gm");
      close.lastIndex = STYLE_OR_FENCE.lastIndex;
      if (close.exec(text) === null) break;
      STYLE_OR_FENCE.lastIndex = close.lastIndex;
      continue;
    }
    STYLE_END.lastIndex = match.index;
    if (!STYLE_END.test(text)) break;
    result += text.slice(from, match.index);
    from = STYLE_OR_FENCE.lastIndex = STYLE_END.lastIndex;
  }
  return result + text.slice(from);
}
