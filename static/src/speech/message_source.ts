/** The audio of a message, sentence by sentence, also during its reply. */
import type { Message } from "../api/types.ts";
import { effect } from "@preact/signals";
import { speechApi } from "../api/speech.ts";
import { splitReasoning, textOf } from "../state/chat/message_text.ts";
import type { OpenChat } from "../state/chat/open_chat.ts";
import type { Store } from "../state/store.ts";
import { StreamedAudio } from "./streamed_audio.ts";
import { type AudioSource, playSource } from "./playback.ts";
import { type SpeechSegment, SpeechSegments } from "./speech_segments.ts";

/** The voices of a message; undefined is the default voice. */
interface Voices {
  narration: string | undefined;
  quoted: string | undefined;
}

/**
 * Reads a message of the open chat aloud.
 *
 * @param known Text to skip: what the message had before it was continued.
 */
export function readMessageAloud(store: Store, chat: OpenChat, messageId: string, known: string): void {
  playSource(store, messageId, messageSource(store, chat, messageId, known));
}

function messageSource(store: Store, chat: OpenChat, messageId: string, known: string): AudioSource {
  const api = speechApi(store.api.client);
  // Chosen with the first text: in a group, only then it's known who speaks.
  let voices: Voices | undefined;
  let pieces: SpeechSegments | undefined;
  const waiting: SpeechSegment[] = [];
  let isWhole = false;
  let news = Promise.withResolvers<void>();
  const close = effect(() => {
    // Later changes of a complete message are a different text.
    if (isWhole) return;
    const run = chat.replies.run.value?.messageId === messageId ? chat.replies.run.value : undefined;
    const message = chat.pages.items.value.find(({ id }) => id === messageId);
    const text = run ? run.text.value : message ? textOf(message.content) : "";
    const { said } = splitReasoning(text);
    if (pieces === undefined && said !== "") {
      const message = chat.pages.find(messageId);
      voices = chooseVoices(store, chat, message);
      pieces = new SpeechSegments({ isSplit: voices.narration !== voices.quoted, known: splitReasoning(known).said });
      const name = store.speaking.isHandsFree && chat.isGroup.peek() &&
        store.people.character(message?.character_id)?.name;
      if (name) waiting.push({ text: `${name}.`, isQuoted: false });
    }
    waiting.push(...pieces?.next(said, run === undefined) ?? []);
    isWhole = run === undefined;
    news.resolve();
    news = Promise.withResolvers();
  });
  return {
    async next() {
      while (waiting.length === 0 && !isWhole) await news.promise;
      const piece = waiting.shift();
      if (!piece) return undefined;
      const voice = piece.isQuoted ? voices?.quoted : voices?.narration;
      return new StreamedAudio((signal) => api.speak({ text: piece.text, voice }, signal));
    },
    close() {
      close();
      isWhole = true;
      waiting.length = 0;
      news.resolve();
    },
  };
}

function chooseVoices({ people, preferences }: Store, chat: OpenChat, message: Message | undefined): Voices {
  const settings = preferences.settings.peek();
  const isReply = message?.role === "assistant";
  const speaker = isReply ? message.character_id ?? chat.head.peek()?.participants?.[0]?.character_id : undefined;
  const own = people.character(speaker)?.voice;
  return {
    narration: settings?.narration_voice ?? own,
    quoted: own ?? settings?.speech_voice ?? undefined,
  };
}
