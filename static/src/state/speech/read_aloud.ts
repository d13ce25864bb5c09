/** Who has the voice: one thing at a time is heard on this page. What makes it heard is loaded when it is first wanted. */
import { signal } from "@preact/signals";
import type { Playback } from "../../speech/playback.ts";
import { texts } from "../../texts/texts.ts";
import type { OpenChat } from "../chat/open_chat.ts";
import type { Store } from "../store.ts";

/** Something that is heard, or about to be. */
export interface AudioOwner {
  /** What it is: the id of a message, of a sample. */
  readonly key: string;
  stop?(): void;
}

/** The page's voice; speech/play_source.ts lets things be heard. */
export class ReadAloud {
  readonly now = signal<AudioOwner | undefined>(undefined);
  /** The one player, once something was heard. */
  playback: Playback | undefined;
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Reads a message aloud, while it is still written too. @param known Its beginning that is not to be read. */
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

  /** Puts something in the place of what was heard. */
  take(heard: AudioOwner): AudioOwner {
    this.stop();
    return this.now.value = heard;
  }

  /** Is silent. */
  stop(): void {
    this.now.peek()?.stop?.();
    this.now.value = undefined;
  }
}
