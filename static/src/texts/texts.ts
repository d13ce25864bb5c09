/** The texts of the page in the current language. English is part of the bundle; other languages load on demand. */
import { signal } from "@preact/signals";
import { en, type Texts } from "./en/en.ts";

/** The available languages, each by its own name. */
export const LANGUAGES = { en: "English", de: "Deutsch", ja: "日本語" } as const;

/** A language with a catalogue. */
export type Language = keyof typeof LANGUAGES;

const LOADERS: Record<Language, () => Promise<Texts>> = {
  en: () => Promise.resolve(en),
  de: async () => (await import("./de/de.ts")).de,
  ja: async () => (await import("./ja/ja.ts")).ja,
};

/** The current catalogue. Read it while rendering and don't store it: it changes with the language. */
export let texts: Texts = en;

/** The current language. The page renders again when it changes. */
export const language = signal<Language>("en");

/** Number of the latest request: an earlier one that loads slowly must not replace it. */
let latestRequest = 0;

/** Returns the first wanted language that is available, by its primary subtag (`de-AT` is `de`); English if there is none. */
export function findLanguage(requested: readonly (string | null | undefined)[]): Language {
  for (const tag of requested) {
    const name = tag?.toLowerCase().split("-")[0] ?? "";
    if (Object.hasOwn(LANGUAGES, name)) return name as Language;
  }
  return "en";
}

/** Loads a language and switches to it. @throws {Error} if its file can't be loaded; the language stays as it was. */
export async function setLanguage(wanted: Language): Promise<void> {
  const request = ++latestRequest;
  if (wanted === language.peek()) return;
  const loaded = await LOADERS[wanted]();
  if (request !== latestRequest) return;
  texts = loaded;
  language.value = wanted;
}
