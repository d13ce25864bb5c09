/** The texts in the language that is shown. English comes with the page, another language once it is asked for. */
import { signal } from "@preact/signals";
import { en, type Texts } from "./en/en.ts";

export type { Texts };

/** Languages there are, each by its own name. */
export const LANGUAGES = { en: "English", de: "Deutsch", ja: "日本語" } as const;

/** A language there is a catalogue for. */
export type Language = keyof typeof LANGUAGES;

const LOADERS: Record<Language, () => Promise<Texts>> = {
  en: () => Promise.resolve(en),
  de: async () => (await import("./de/de.ts")).de,
  ja: async () => (await import("./ja/ja.ts")).ja,
};

/** The catalogue in use. Read it while rendering, not once and for all: another language may take its place. */
export let texts: Texts = en;

/** The language in use; whoever renders the page does it again when this changes. */
export const language = signal<Language>("en");

/** Number of the last change that was asked for: an older one that loads slowly must not undo it. */
let lastAsked = 0;

/** Gives the first of the wanted languages that we have, by its first part: `de-AT` is `de`. English when there is none. */
export function languageOf(wanted: readonly (string | null | undefined)[]): Language {
  for (const tag of wanted) {
    const name = tag?.toLowerCase().split("-")[0] ?? "";
    if (Object.hasOwn(LANGUAGES, name)) return name as Language;
  }
  return "en";
}

/** Loads a language and puts it to use. @throws {Error} when its file cannot be loaded; the language stays as it was. */
export async function showLanguage(wanted: Language): Promise<void> {
  const asked = ++lastAsked;
  if (wanted === language.peek()) return;
  const loaded = await LOADERS[wanted]();
  if (asked !== lastAsked) return;
  texts = loaded;
  language.value = wanted;
}
