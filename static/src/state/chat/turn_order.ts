/** Who speaks when in a chat of several characters: named by hand, or by the server's order, with whoever would like to after that. */
import type { Message } from "../../api/types.ts";
import { computed, signal } from "@preact/signals";
import type { Api } from "../../api/api.ts";
import type { OpenChat } from "./open_chat.ts";

/** How many characters answer one turn by themselves, the first among them; more is a crowd that nobody stops. */
const MOST_ANSWERS = 5;

/** The turns of one chat. */
export class TurnOrder {
  /** Named for the next reply; undefined leaves it to the order. */
  readonly named = signal<string | undefined>(undefined);
  /** Who will speak by themselves when the reply that runs is complete. */
  readonly waiting = signal<readonly string[]>([]);
  /** Who is named; where the order is by hand, that is always somebody. */
  readonly next = computed(() => this.named.value ?? (this.#isByHand ? this.#firstToSpeak() : undefined));
  #chat: OpenChat;
  #api: Pick<Api, "previewChat">;
  /** Asking again for the same message gives the same. */
  #asked: { messageId: string; speakerId: string | undefined } | undefined;

  constructor(chat: OpenChat, api: Pick<Api, "previewChat">) {
    this.#chat = chat;
    this.#api = api;
  }

  /** Gives who writes a message; undefined leaves it to the server. @param turn What it answers, if anything. */
  async speakerFor(messageId: string, turn: Message | undefined): Promise<string | undefined> {
    if (this.#asked?.messageId === messageId) return this.#asked.speakerId;
    this.waiting.value = [];
    const speakerId = this.next.peek() ?? await this.#askOrder(turn);
    if (!this.#isByHand) this.named.value = undefined;
    this.#asked = { messageId, speakerId };
    return speakerId;
  }

  /** Lets the next one speak once a reply is complete; anything else ends the row. */
  goOn(reply: Message | undefined): void {
    if (this.waiting.peek().length === 0) return;
    const [next, ...rest] = reply?.status === "complete" ? this.waiting.peek() : [];
    this.waiting.value = next === undefined ? [] : rest.filter((id) => this.#isPresent(id));
    if (next !== undefined && this.#isPresent(next)) this.#chat.speakOn(next);
  }

  /** Nobody else speaks by themselves. */
  endRow(): void {
    this.waiting.value = [];
  }

  get #isByHand(): boolean {
    return this.#chat.options.value.reply_order === "manual";
  }

  /** Whoever spoke last may go on; else the first who is not muted. */
  #firstToSpeak(): string | undefined {
    const last = this.#chat.pages.items.value.findLast(({ character_id }) => character_id !== undefined)?.character_id;
    const present = this.#chat.options.value.participants?.filter(({ muted }) => !muted) ?? [];
    return (present.find(({ character_id }) => character_id === last) ?? present[0])?.character_id;
  }

  #isPresent(id: string): boolean {
    const { participants } = this.#chat.options.peek();
    return participants?.some(({ character_id, muted }) => character_id === id && !muted) ?? false;
  }

  /** Only a turn of the owner's is answered by several. */
  async #askOrder(turn: Message | undefined): Promise<string | undefined> {
    try {
      const turns = turn ? [{ role: turn.role, content: turn.content }] : [];
      const { speakers = [] } = await this.#api.previewChat(
        this.#chat.id,
        turns,
        AbortSignal.timeout(10_000),
        turn?.id,
      );
      if (turn) this.waiting.value = speakers.slice(1, MOST_ANSWERS);
      return speakers[0];
    } catch {
      // The request itself says what is wrong; without an order the server chooses.
      return undefined;
    }
  }
}
