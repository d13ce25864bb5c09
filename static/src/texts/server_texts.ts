/**
 * What the server says in sentences of its own, in the language that is shown: lines of an import's report, findings of
 * the doctor. Each comes with a code and what stands in its places. English is what the server says; the other languages
 * are loaded with the first screen that shows such sentences.
 */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Language, language } from "./texts.ts";

/** Sentences by their codes; `{name}` is a place in one. */
export interface ServerTexts {
  reasons: Record<string, string>;
  findings: Record<string, { about: string; remedy?: string }>;
}

type Params = Record<string, string | number>;

const LOADERS: Partial<Record<Language, () => Promise<ServerTexts>>> = {
  de: async () => (await import("./de/server_texts.ts")).serverTexts,
  ja: async () => (await import("./ja/server_texts.ts")).serverTexts,
};

const loaded = signal<Partial<Record<Language, ServerTexts>>>({});

/** Gives the sentences in the language that is shown; nothing for English, and until they are there. */
export function useServerTexts(): ServerTexts | undefined {
  const shown = language.value;
  useEffect(() => {
    if (loaded.peek()[shown]) return;
    // Without them the server's own words are there.
    LOADERS[shown]?.().then((said) => loaded.value = { ...loaded.peek(), [shown]: said }, () => {});
  }, [shown]);
  return loaded.value[shown];
}

/** Gives the reason of a line: in the language that is shown where that has it, else as the server says it. */
export function translateReason(
  said: ServerTexts | undefined,
  { code, params, reason }: { code?: string; params?: Params; reason: string },
): string {
  const text = code === undefined ? undefined : said?.reasons[code];
  return text === undefined ? reason : fillPlaceholders(text, params);
}

/** Gives what was found and what to do, likewise. */
export function translateFinding(
  said: ServerTexts | undefined,
  { code, params, about, remedy }: { code: string; params: Params; about: string; remedy?: string },
): { about: string; remedy?: string } {
  const text = said?.findings[code];
  if (text === undefined) return { about, remedy };
  return { about: fillPlaceholders(text.about, params), remedy: text.remedy && fillPlaceholders(text.remedy, params) };
}

function fillPlaceholders(text: string, params: Params = {}): string {
  return text.replace(/\{(\w+)\}/g, (place, name: string) => String(params[name] ?? place));
}
