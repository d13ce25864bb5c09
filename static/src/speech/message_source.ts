/** The audio of a message, sentence by sentence, also during its reply. */
import type { Message } from "../api/types.ts";
import { effect, signal } from "@preact/signals";
import { speechApi } from "../api/speech.ts";
import { getContentText, splitReasoning } from "../state/chat/message_text.ts";
import type { OpenChat } from "../state/chat/open_chat.ts";
import type { Store } from "../state/store.ts";
import { StreamedAudio } from "./streamed_audio.ts";
import { type AudioSource, playSource } from "./playback.ts";
import { SpokenBlocks, type SpokenWords, toSpokenText } from "../markdown/plain_text.ts";
import { SENTENCE_END } from "../markdown/sentences.ts";
import { texts } from "../texts/texts.ts";

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
  const speakerState = signal<"unknown" | "loading" | "loaded">("unknown");
  let pieces: SpeechSegments | undefined;
  const waiting: SpeechSegment[] = [];
  let isWhole = false;
  let news = Promise.withResolvers<void>();
  const close = effect(() => {
    // Later changes of a complete message are a different text.
    if (isWhole) return;
    const run = chat.replies.run.value?.messageId === messageId ? chat.replies.run.value : undefined;
    const message = chat.pages.items.value.find(({ id }) => id === messageId);
    const text = run ? run.text.value : message ? getContentText(message.content) : "";
    const { text: spoken } = splitReasoning(text);
    if (pieces === undefined && spoken !== "") {
      const message = chat.pages.find(messageId);
      const speaker = findSpeaker(chat, message);
      // Its voice may not be loaded in the first moments of a chat.
      if (speaker !== undefined && speakerState.value !== "loaded") {
        if (speakerState.value === "unknown") {
          speakerState.value = "loading";
          void store.people.waitForCharacter(speaker).then(() => speakerState.value = "loaded");
        }
        return;
      }
      voices = chooseVoices(store, chat, message);
      // Read aloud, code and rules are pauses.
      const { formula, diagram } = texts.chat.spoken;
      pieces = new SpeechSegments({ formula, diagram }, {
        isSplit: voices.narration !== voices.quoted,
        known: splitReasoning(known).text,
      });
      const name = store.speaking.isHandsFree && chat.isGroup.peek() &&
        store.people.character(message?.character_id)?.name;
      if (name) waiting.push({ text: `${name}.`, isQuoted: false });
    }
    waiting.push(...pieces?.next(spoken, run === undefined) ?? []);
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

function findSpeaker(chat: OpenChat, message: Message | undefined): string | undefined {
  if (message?.role !== "assistant") return undefined;
  return message.character_id ?? chat.head.peek()?.participants?.[0]?.character_id;
}

function chooseVoices({ people, preferences }: Store, chat: OpenChat, message: Message | undefined): Voices {
  const settings = preferences.settings.peek();
  const own = people.character(findSpeaker(chat, message))?.voice;
  return {
    narration: settings?.narration_voice ?? own,
    quoted: own ?? settings?.speech_voice ?? undefined,
  };
}

/** One segment of speech. */
interface SpeechSegment {
  text: string;
  /** True inside quotation marks; always false if quotations aren't split. */
  isQuoted: boolean;
}

/**
 * Longer sentences are split. Servers accept 4,096 characters, and many generate all of a text before its first sound.
 */
const MAX_LENGTH = 400;

/** Closing quotation marks by their opening one. A straight mark is its own. */
const QUOTES: Readonly<Record<string, string>> = {
  '"': '"',
  "“": "”",
  "„": "“”",
  "«": "»",
  "»": "«",
  "「": "」",
  "『": "』",
};

/** Abbreviations: a period after one of these ends no sentence. */
const ABBREVIATED = /(?:^|[\s("“„«])(?:Mrs?|Ms|Dr|Prof|St|vs|bzw|ca|Nr|No|z\.\s?B|e\.g|i\.e|\p{Lu}|\d{1,2})\.$/u;

/** Splits a growing message into segments to read aloud: sentences, and quotations if they have their own voice. */
export class SpeechSegments {
  readonly #words: SpokenWords;
  readonly #blocks: SpokenBlocks;
  readonly #isSplit: boolean;
  #read = 0;
  #isAtLineStart = true;
  /** The closing mark of the open quotation. */
  #closing: string | undefined;

  /** @param options.isSplit Quotations become segments. @param options.known Text to skip. */
  constructor(words: SpokenWords, { isSplit = false, known = "" }: { isSplit?: boolean; known?: string } = {}) {
    this.#words = words;
    this.#blocks = new SpokenBlocks(words);
    this.#isSplit = isSplit;
    // A period at the end counts, whatever follows.
    this.next(`${known} `, false);
  }

  /** Returns the segments that became complete. @param isFinal The text is complete, so its rest is a segment. */
  next(text: string, isFinal: boolean): SpeechSegment[] {
    const sentences = splitSentences(text.slice(this.#read), isFinal);
    return sentences.flatMap((sentence) => {
      this.#read += sentence.length;
      return this.#piecesOf(sentence);
    });
  }

  #piecesOf(sentence: string): SpeechSegment[] {
    this.#isAtLineStart = sentence.endsWith("\n");
    const said = this.#blocks.next(sentence);
    const runs = this.#isSplit ? this.#runsOf(said) : [{ text: said, isQuoted: false }];
    // A quotation that nobody closed ends with its paragraph.
    if (this.#isAtLineStart) this.#closing = undefined;
    return runs.flatMap(({ text, isQuoted }) =>
      listSpokenParts(text, this.#words).map((part) => ({ text: part, isQuoted }))
    );
  }

  /** Cuts a sentence at its quotation marks, which go. */
  #runsOf(sentence: string): SpeechSegment[] {
    const runs: SpeechSegment[] = [];
    let text = "";
    const cut = (isQuoted: boolean) => {
      runs.push({ text, isQuoted });
      text = "";
    };
    for (const letter of sentence) {
      if (this.#closing?.includes(letter)) {
        cut(true);
        this.#closing = undefined;
      } else if (this.#closing === undefined && Object.hasOwn(QUOTES, letter)) {
        cut(false);
        this.#closing = QUOTES[letter];
      } else text += letter;
    }
    cut(this.#closing !== undefined);
    return runs;
  }
}

/** More than the longest of `ABBREVIATED`. */
const ABBREVIATION_LENGTH = 12;

/** Splits a text after each whole sentence. The rest counts only if the text is complete. */
function splitSentences(text: string, isFinal: boolean): string[] {
  const sentences: string[] = [];
  let from = 0;
  for (const match of text.matchAll(SENTENCE_END)) {
    const end = match.index + match[0].length;
    // Only the end of the sentence counts; otherwise a text of abbreviations takes quadratic time.
    if (ABBREVIATED.test(text.slice(Math.max(from, end - ABBREVIATION_LENGTH), end))) continue;
    sentences.push(text.slice(from, end));
    from = end;
  }
  if (isFinal && from < text.length) sentences.push(text.slice(from));
  return sentences;
}

/** Returns a text as it is spoken: without formatting, URLs as their host, nothing without words. */
function listSpokenParts(text: string, words: SpokenWords): string[] {
  const spoken = toSpokenText(text, words).replace(/\bhttps?:\/\/(?:www\.)?([^\s/?#]+)\S*/g, "$1").trim();
  return /[\p{L}\p{N}]/u.test(spoken) ? [...shorter(spoken)] : [];
}

function* shorter(text: string): Generator<string> {
  let rest = text;
  while (rest.length > MAX_LENGTH) {
    const head = rest.slice(0, MAX_LENGTH);
    const at = Math.max(head.lastIndexOf(" "), ...[",", ";", ":", "、", "，"].map((mark) => head.lastIndexOf(mark)));
    const cut = at <= 0 ? MAX_LENGTH : at + 1;
    yield rest.slice(0, cut).trim();
    rest = rest.slice(cut).trim();
  }
  if (rest !== "") yield rest;
}
