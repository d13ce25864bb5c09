/** The turn order in a group: chosen by hand, or by the server's order, with those who speak after that. */
import type { Message } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import type { Api } from "../../api/api.ts";
import type { OpenChat } from "./open_chat.ts";

/** Most characters that answer one message automatically, the first included. */
const MAX_REPLIES = 5;

/** The turn order of one chat. */
export class TurnOrder {
  /** Chosen for the next reply; undefined leaves it to the order. */
  readonly named = signal<string | undefined>(undefined);
  /** Characters that speak automatically after the running reply. */
  readonly waiting = signal<readonly string[]>([]);
  /** The next speaker, if known. In manual order, it is always known. */
  readonly next = computed(() => this.named.value ?? (this.#isByHand ? this.#firstToSpeak() : undefined));
  #chat: OpenChat;
  #api: Pick<Api, "previewChat">;
  /** Repeated calls for the same message return the same result. */
  #asked: { messageId: string; speakerId: string | undefined } | undefined;

  constructor(chat: OpenChat, api: Pick<Api, "previewChat">) {
    this.#chat = chat;
    this.#api = api;
  }

  /** Returns who writes a message; undefined leaves it to the server. @param turn The message to answer, if any. */
  async speakerFor(messageId: string, turn: Message | undefined): Promise<string | undefined> {
    if (this.#asked?.messageId === messageId) return this.#asked.speakerId;
    this.waiting.value = [];
    const speakerId = this.next.peek() ?? await this.#askOrder(turn);
    if (!this.#isByHand) this.named.value = undefined;
    this.#asked = { messageId, speakerId };
    return speakerId;
  }

  /** Starts the next reply when one is complete; any other end clears the queue. */
  goOn(reply: Message | undefined): void {
    if (this.waiting.peek().length === 0) return;
    const [next, ...rest] = reply?.status === "complete" ? this.waiting.peek() : [];
    this.waiting.value = next === undefined ? [] : rest.filter((id) => this.#isPresent(id));
    if (next !== undefined && this.#isPresent(next)) this.#chat.replies.speakOn(next);
  }

  /** Clears the queue. */
  endRow(): void {
    this.waiting.value = [];
  }

  get #isByHand(): boolean {
    return this.#chat.options.value.reply_order === "manual";
  }

  /** The last speaker continues; otherwise the first who is not muted. */
  #firstToSpeak(): string | undefined {
    const last = this.#chat.pages.items.value.findLast(({ character_id }) => character_id !== undefined)?.character_id;
    const present = this.#chat.options.value.participants?.filter(({ muted }) => !muted) ?? [];
    return (present.find(({ character_id }) => character_id === last) ?? present[0])?.character_id;
  }

  #isPresent(id: string): boolean {
    const { participants } = this.#chat.options.peek();
    return participants?.some(({ character_id, muted }) => character_id === id && !muted) ?? false;
  }

  /** Only a user message is answered by several characters. */
  async #askOrder(turn: Message | undefined): Promise<string | undefined> {
    try {
      const turns = turn ? [{ role: turn.role, content: turn.content }] : [];
      const { speakers = [] } = await this.#api.previewChat(
        this.#chat.id,
        turns,
        AbortSignal.timeout(10_000),
        { user_message_id: turn?.id },
      );
      if (turn) this.waiting.value = speakers.slice(1, MAX_REPLIES);
      return speakers[0];
    } catch {
      // The request itself reports the problem; without an order the server chooses.
      return undefined;
    }
  }
}
