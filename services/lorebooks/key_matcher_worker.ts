/** The Worker that tries patterns on texts. It answers each as it goes, so that key_matcher.ts sees where it stands still. */
import { compiled, holdsPlain, type KeyFinding, patternOf, type ScanKey, ScanText } from "./scan_keys.ts";
import type { KeyQuery } from "./key_matcher.ts";

/** What it gets back: that the work began, then the answers in order. */
export type KeyNews = { kind: "begun" } | { kind: "found"; findings: KeyFinding[] };

/** Plain keys answered together. */
const BATCH = 500;

function* newsOf({ texts, keys, ways, among }: KeyJob): Generator<KeyNews> {
  yield { kind: "begun" };
  const scanned = texts.map((text) => new ScanText(text));
  let findings: KeyFinding[] = [];
  for (const [place, text] of keys.entries()) {
    const way = ways[place]!;
    const isPattern = (way & PATTERN) > 0;
    if (isPattern && findings.length > 0) {
      yield { kind: "found", findings };
      findings = [];
    }
    const within = among[Math.floor(way / FLAGS)]!.map((at) => scanned[at]!);
    findings.push(
      isPattern ? patternIn(within, text) : plainIn(within, {
        text,
        isCaseSensitive: (way & CASE_SENSITIVE) > 0,
        isWholeWord: (way & WHOLE_WORD) > 0,
      }),
    );
    if (isPattern || findings.length >= BATCH) {
      yield { kind: "found", findings };
      findings = [];
    }
  }
  if (findings.length > 0) yield { kind: "found", findings };
}

function plainIn(texts: ScanText[], key: ScanKey): KeyFinding {
  return texts.some((text) => holdsPlain(text, key)) ? "hit" : "miss";
}

function patternIn(texts: ScanText[], key: string): KeyFinding {
  const pattern = patternOf(key);
  const expression = pattern && compiled(pattern);
  if (expression === undefined) return "invalid";
  return texts.some((text) => expression.test(text.plain)) ? "hit" : "miss";
}

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  self.onmessage = ({ data }: MessageEvent<KeyJob>) => {
    for (const news of newsOf(data)) self.postMessage(news);
  };
}

/** What the serving thread sends: plain lists, since thousands of objects take longer to send than to look for. */
export interface KeyJob {
  texts: string[];
  keys: string[];
  /** Per key: which of `among` its texts are, and its flags. */
  ways: number[];
  /** Sets of texts, by their places. */
  among: number[][];
}

/** Flags of a key. */
export const CASE_SENSITIVE = 1;
export const WHOLE_WORD = 2;
export const PATTERN = 4;
/** How many values the flags of a key can have. */
export const FLAGS = 8;

/** Packs queries for the Worker. */
export function jobOf(texts: string[], queries: readonly KeyQuery[]): KeyJob {
  const sets = new Map<string, number>();
  const among: number[][] = [];
  const ways = queries.map(({ key, texts: within }) => {
    const name = within.join();
    let set = sets.get(name);
    if (set === undefined) sets.set(name, set = among.push(within) - 1);
    return set * FLAGS + (key.isCaseSensitive ? CASE_SENSITIVE : 0) + (key.isWholeWord ? WHOLE_WORD : 0) +
      (key.pattern === undefined ? 0 : PATTERN);
  });
  return { texts, keys: queries.map(({ key }) => key.text), ways, among };
}
