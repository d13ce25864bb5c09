/** Voice lists: parsed from speech servers, and the known voices of popular models (docs/protocols/tts.md, "Voice catalogs"). */
import { isJsonObject } from "../json/type_guards.ts";

/** A voice in a list. */
export interface Voice {
  id: string;
  name: string;
  /** BCP 47, if known. */
  language?: string;
}

const OPENAI_ALL = "alloy ash ballad coral echo fable nova onyx sage shimmer verse marin cedar";
const OPENAI_FIRST = "alloy ash coral echo fable nova onyx sage shimmer";

// The first letter of a Kokoro voice is its language, the second its gender (f or m).
const KOKORO_LANGUAGES: Record<string, string> = {
  a: "en-US",
  b: "en-GB",
  e: "es",
  f: "fr",
  h: "hi",
  i: "it",
  j: "ja",
  p: "pt-BR",
  z: "zh",
};
const KOKORO = [
  "af_heart af_alloy af_aoede af_bella af_jessica af_kore af_nicole af_nova af_river af_sarah af_sky",
  "am_adam am_echo am_eric am_fenrir am_liam am_michael am_onyx am_puck am_santa",
  "bf_alice bf_emma bf_isabella bf_lily bm_daniel bm_fable bm_george bm_lewis",
  "ef_dora em_alex em_santa ff_siwis hf_alpha hf_beta hm_omega hm_psi if_sara im_nicola",
  "jf_alpha jf_gongitsune jf_nezumi jf_tebukuro jm_kumo pf_dora pm_alex pm_santa",
  "zf_xiaobei zf_xiaoni zf_xiaoxiao zf_xiaoyi zm_yunjian zm_yunxi zm_yunxia zm_yunyang",
].join(" ");

const ORPHEUS: Record<string, string> = {
  en: "tara leah jess leo dan mia zac zoe",
  fr: "pierre amelie marie",
  de: "jana thomas max",
  ko: "유나 준서",
  hi: "ऋतिका",
  zh: "长乐 白芷",
  es: "javi sergio maria",
  it: "pietro giulia carlo",
};

/** Lists the known voices of a model by its name. Returns an empty list for unknown models. */
export function listKnownVoices(model: string): Voice[] {
  const name = model.toLowerCase();
  if (name.includes("kokoro")) {
    return KOKORO.split(" ").map((id) => ({ id, name: capitalize(id.slice(3)), language: KOKORO_LANGUAGES[id[0]!] }));
  }
  if (name.includes("orpheus")) {
    return Object.entries(ORPHEUS).flatMap(([language, names]) =>
      names.split(" ").map((id) => ({ id, name: capitalize(id), language }))
    );
  }
  if (/^tts-1/.test(name)) return toVoices(OPENAI_FIRST);
  if (/gpt-4o.*tts/.test(name)) return toVoices(OPENAI_ALL);
  return [];
}

function toVoices(names: string): Voice[] {
  return names.split(" ").map((id) => ({ id, name: capitalize(id) }));
}

function capitalize(name: string): string {
  return name[0]!.toUpperCase() + name.slice(1);
}

/** Maximum number of voices read from a response. */
const MAX_VOICES = 5_000;
const MAX_NAME = 300;

/**
 * Parses a list of voices: `voices`, `data` or the value itself, as strings, as objects with an id, or as an object
 * keyed by name.
 *
 * @returns `undefined` if there are no voices: an error with status 200, an empty list, or something else
 */
export function parseVoiceList(value: unknown): Voice[] | undefined {
  if (!isJsonObject(value) && !Array.isArray(value)) return undefined;
  const source = Array.isArray(value)
    ? value
    : value.voices ?? value.data ?? (isKeyedByVoice(value) ? value : undefined);
  const entries = Array.isArray(source) ? source : isJsonObject(source) ? Object.keys(source) : [];
  const voices = new Map<string, Voice>();
  for (const entry of entries.slice(0, MAX_VOICES)) {
    const voice = parseVoice(entry);
    if (voice !== undefined && !voices.has(voice.id)) voices.set(voice.id, voice);
  }
  return voices.size === 0 ? undefined : [...voices.values()];
}

/** Reports whether an object is keyed by voice, like Piper's. */
function isKeyedByVoice(value: Record<string, unknown>): boolean {
  return !("error" in value) && !("detail" in value) && Object.values(value).every(isJsonObject);
}

function parseVoice(entry: unknown): Voice | undefined {
  if (typeof entry === "string") return createVoice(entry, entry);
  if (!isJsonObject(entry)) return undefined;
  const id = [entry.id, entry.voice_id, entry.name].find((candidate) => typeof candidate === "string");
  const voice = createVoice(id, typeof entry.name === "string" ? entry.name : id);
  if (voice !== undefined && typeof entry.language === "string") voice.language = entry.language.slice(0, MAX_NAME);
  return voice;
}

function createVoice(id: unknown, name: unknown): Voice | undefined {
  if (typeof id !== "string" || id.trim() === "" || id.length > MAX_NAME) return undefined;
  return { id, name: String(name).trim().slice(0, MAX_NAME) || id };
}

/** How long a server's list of models is cached. */
const TTL_MS = 60_000;

/** Caches the models of one server. */
export class ListedModels {
  readonly #list: (signal: AbortSignal) => Promise<string[]>;
  #known: { baseUrl: string; ids: string[]; untilMs: number } | undefined;

  /** @param list Requests the list from the configured server. */
  constructor(list: (signal: AbortSignal) => Promise<string[]>) {
    this.#list = list;
  }

  /**
   * Returns the named model if the server lists it, otherwise the configured one.
   *
   * @returns Empty for the server's default.
   * @throws Errors of `list`
   */
  async choose(name: string, configured: { baseUrl: string; model: string }, signal: AbortSignal): Promise<string> {
    const { baseUrl, model } = configured;
    if (this.#known?.baseUrl !== baseUrl || this.#known.untilMs < performance.now()) {
      this.#known = { baseUrl, ids: await this.#list(signal), untilMs: performance.now() + TTL_MS };
    }
    const { ids } = this.#known;
    // A server without a list and without a configured model may need the name.
    return ids.includes(name) || (ids.length === 0 && model === "") ? name : model;
  }
}
