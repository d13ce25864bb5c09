/** Voices of well-known models, for servers that do not list theirs. Taken from the models' own documentation. */

/** A voice as the list shows it. */
export interface Voice {
  id: string;
  name: string;
  /** BCP 47, where the name tells it. */
  language?: string;
}

const OPENAI_ALL = "alloy ash ballad coral echo fable nova onyx sage shimmer verse marin cedar";
const OPENAI_FIRST = "alloy ash coral echo fable nova onyx sage shimmer";

// The first letter of a Kokoro voice is its language, the second is f or m.
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

/** Gives the known voices of a model, told by its name; an empty list for a model nobody has written down. */
export function curatedVoices(model: string): Voice[] {
  const name = model.toLowerCase();
  if (name.includes("kokoro")) {
    return KOKORO.split(" ").map((id) => ({ id, name: titled(id.slice(3)), language: KOKORO_LANGUAGES[id[0]!] }));
  }
  if (name.includes("orpheus")) {
    return Object.entries(ORPHEUS).flatMap(([language, names]) =>
      names.split(" ").map((id) => ({ id, name: titled(id), language }))
    );
  }
  if (/^tts-1/.test(name)) return plain(OPENAI_FIRST);
  if (/gpt-4o.*tts/.test(name)) return plain(OPENAI_ALL);
  return [];
}

function plain(names: string): Voice[] {
  return names.split(" ").map((id) => ({ id, name: titled(id) }));
}

function titled(name: string): string {
  return name[0]!.toUpperCase() + name.slice(1);
}
