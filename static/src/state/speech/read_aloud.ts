/** Audio output: one thing plays at a time. The player loads when first needed. */
import { batch, signal } from "@preact/signals";
import type { Playback } from "../../speech/playback.ts";
import { texts } from "../../texts/texts.ts";
import type { OpenChat } from "../chat/open_chat.ts";
import type { Store } from "../store.ts";

/** Audio that is playing or about to play. */
export interface AudioOwner {
  /** Id of the message or the sample. */
  readonly key: string;
  stop?(): void;
}

/** A message to read. */
interface MessageToRead {
  chat: OpenChat;
  messageId: string;
  /** Text at its start to skip. */
  known: string;
}

/** Owns the audio output; speech/playback.ts plays. */
export class ReadAloud {
  readonly now = signal<AudioOwner | undefined>(undefined);
  /** The one player, after the first use. */
  playback: Playback | undefined;
  /** A conversation by voice is open: all replies are read, and in groups the speaker's name first. */
  isHandsFree = false;
  readonly #store: Store;
  /** Messages to read after the current one. */
  #waiting: MessageToRead[] = [];

  constructor(store: Store) {
    this.#store = store;
  }

  /** Reads a message aloud instead of what is playing, also during its reply. @param known Text at its start to skip. */
  readMessage(chat: OpenChat, messageId: string, known = ""): Promise<void> {
    return this.#read({ chat, messageId, known });
  }

  /** Reads a message aloud after those that are being read, also during its reply. @param known Text at its start to skip. */
  async readNext(chat: OpenChat, messageId: string, known = ""): Promise<void> {
    if (!this.now.peek()) return await this.#read({ chat, messageId, known });
    this.#waiting = [...this.#waiting.filter((each) => each.messageId !== messageId), { chat, messageId, known }];
  }

  /** Replaces what is playing. */
  take(owner: AudioOwner): AudioOwner {
    const waiting = owner.key === this.now.peek()?.key ? this.#waiting : [];
    batch(() => {
      this.stop();
      this.now.value = owner;
    });
    this.#waiting = waiting;
    return owner;
  }

  /** Reads the next message after `owner` has played to its end. */
  end(owner: AudioOwner): void {
    if (this.now.peek() !== owner) return;
    const [next, ...rest] = this.#waiting;
    if (!next) return this.stop();
    void this.#read(next, rest);
  }

  /** Stops; waiting messages aren't read. */
  stop(): void {
    this.#waiting = [];
    this.now.peek()?.stop?.();
    this.now.value = undefined;
  }

  async #read({ chat, messageId, known }: MessageToRead, waiting: MessageToRead[] = []): Promise<void> {
    const owner = this.take({ key: messageId });
    this.#waiting = waiting;
    try {
      const { readMessageAloud } = await import("../../speech/message_source.ts");
      if (this.now.peek() === owner) readMessageAloud(this.#store, chat, messageId, known);
    } catch {
      this.#store.toasts.show(texts.chat.speakFailed, { isError: true });
      this.stop();
    }
  }
}
