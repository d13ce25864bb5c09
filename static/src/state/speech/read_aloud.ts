/** Audio output: one thing plays at a time. The player loads when first needed. */
import { signal } from "@preact/signals";
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

/** Owns the audio output; speech/playback.ts plays. */
export class ReadAloud {
  readonly now = signal<AudioOwner | undefined>(undefined);
  /** The one player, after the first use. */
  playback: Playback | undefined;
  /** A conversation by voice is open: all replies are read, and in groups the speaker's name first. */
  isHandsFree = false;
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Reads a message aloud, also during its reply. @param known Text at its start to skip. */
  async readMessage(chat: OpenChat, messageId: string, known = ""): Promise<void> {
    const wish = this.take({ key: messageId });
    try {
      const { readMessageAloud } = await import("../../speech/message_source.ts");
      if (this.now.peek() === wish) readMessageAloud(this.#store, chat, messageId, known);
    } catch {
      this.#store.toasts.show(texts.chat.speakFailed, { isError: true });
      this.stop();
    }
  }

  /** Replaces what is playing. */
  take(heard: AudioOwner): AudioOwner {
    this.stop();
    return this.now.value = heard;
  }

  /** Stops. */
  stop(): void {
    this.now.peek()?.stop?.();
    this.now.value = undefined;
  }
}
