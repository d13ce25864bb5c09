/**
 * Translations of the sentences that the server sends: the lines of import reports, ledgers and the findings of the diagnostics.
 * Each sentence has a code and parameters. The server's own text is English; other languages load with the first screen
 * that shows such sentences.
 */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Language, language } from "./texts.ts";

/** Sentences by code; `{name}` is a placeholder. */
export interface ServerTexts {
  reasons: Record<string, string>;
  /** What cards, presets and lorebooks have besides what Parlor uses, by kind. */
  ledger: Record<string, string>;
  findings: Record<string, { about: string; remedy?: string }>;
}

type Params = Record<string, string | number>;

const LOADERS: Partial<Record<Language, () => Promise<ServerTexts>>> = {
  de: async () => (await import("./de/server_texts.ts")).serverTexts,
  ja: async () => (await import("./ja/server_texts.ts")).serverTexts,
};

const loaded = signal<Partial<Record<Language, ServerTexts>>>({});

/** Returns the sentences in the current language; undefined for English and until they are loaded. */
export function useServerTexts(): ServerTexts | undefined {
  const current = language.value;
  useEffect(() => {
    if (loaded.peek()[current]) return;
    // If they can't be loaded, the server's English text is shown.
    LOADERS[current]?.().then((serverTexts) => loaded.value = { ...loaded.peek(), [current]: serverTexts }, () => {});
  }, [current]);
  return loaded.value[current];
}

/** Returns the reason of a report line in the current language, or the server's text if there is no translation. */
export function translateReason(
  serverTexts: ServerTexts | undefined,
  { code, params, reason }: { code?: string; params?: Params; reason: string },
): string {
  const text = code === undefined ? undefined : serverTexts?.reasons[code];
  if (text === undefined) return reason;
  const part = params?.kind === undefined ? undefined : serverTexts?.ledger[params.kind];
  return fillPlaceholders(text, part === undefined ? params : { ...params, part });
}

/** Returns what a ledger counts in the current language, or the server's text if there is no translation. */
export function translateLedger(
  serverTexts: ServerTexts | undefined,
  { kind, reason }: { kind: string; reason: string },
): string {
  return serverTexts?.ledger[kind] ?? reason;
}

/** Returns a finding and its remedy in the current language, or the server's text if there is no translation. */
export function translateFinding(
  serverTexts: ServerTexts | undefined,
  { code, params, about, remedy }: { code: string; params: Params; about: string; remedy?: string },
): { about: string; remedy?: string } {
  const text = serverTexts?.findings[code];
  if (text === undefined) return { about, remedy };
  return { about: fillPlaceholders(text.about, params), remedy: text.remedy && fillPlaceholders(text.remedy, params) };
}

function fillPlaceholders(text: string, params: Params = {}): string {
  return text.replace(/\{(\w+)\}/g, (placeholder, name: string) => String(params[name] ?? placeholder));
}
