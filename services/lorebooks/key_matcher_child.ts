/** Matches keys in the sandbox. It reports each result immediately, so that key_matcher.ts knows which pattern stalls. */
import { compilePattern, containsKey, type KeyFinding, parsePattern, type ScanKey, ScanText } from "./scan_keys.ts";
import type { KeyQuery } from "./key_matcher.ts";
import { serveSandbox } from "../platform/sandbox/child.ts";

/** Number of plain keys per message. */
const BATCH = 500;

/** Yields results in order. */
function* runKeyJob({ texts, keys, codes, textSets }: KeyJob): Generator<KeyFinding[]> {
  const scanned = texts.map((text) => new ScanText(text));
  let findings: KeyFinding[] = [];
  for (const [index, text] of keys.entries()) {
    const way = codes[index]!;
    const isPattern = (way & PATTERN) > 0;
    if (isPattern && findings.length > 0) {
      yield findings;
      findings = [];
    }
    const within = textSets[Math.floor(way / FLAG_VALUES)]!.map((at) => scanned[at]!);
    findings.push(
      isPattern ? matchPattern(within, text) : matchPlain(within, {
        text,
        isCaseSensitive: (way & CASE_SENSITIVE) > 0,
        isWholeWord: (way & WHOLE_WORD) > 0,
      }),
    );
    if (isPattern || findings.length >= BATCH) {
      yield findings;
      findings = [];
    }
  }
  if (findings.length > 0) yield findings;
}

function matchPlain(texts: ScanText[], key: ScanKey): KeyFinding {
  return texts.some((text) => containsKey(text, key)) ? "hit" : "miss";
}

function matchPattern(texts: ScanText[], key: string): KeyFinding {
  const pattern = parsePattern(key);
  const expression = pattern && compilePattern(pattern);
  if (expression === undefined) return "invalid";
  return texts.some((text) => expression.test(text.plain)) ? "hit" : "miss";
}

/** A job. Plain arrays, because sending thousands of objects takes longer than matching them. */
export interface KeyJob {
  texts: string[];
  keys: string[];
  /** Per key: index of its text set, and its flags. */
  codes: number[];
  /** Sets of text indexes. */
  textSets: number[][];
}

/** Flags of a key. */
const CASE_SENSITIVE = 1;
const WHOLE_WORD = 2;
const PATTERN = 4;
/** Number of flag combinations. */
const FLAG_VALUES = 8;

/** Packs queries into a job. */
export function packKeyJob(texts: string[], queries: readonly KeyQuery[]): KeyJob {
  const sets = new Map<string, number>();
  const among: number[][] = [];
  const ways = queries.map(({ key, texts: within }) => {
    const name = within.join();
    let set = sets.get(name);
    if (set === undefined) sets.set(name, set = among.push(within) - 1);
    return set * FLAG_VALUES + (key.isCaseSensitive ? CASE_SENSITIVE : 0) + (key.isWholeWord ? WHOLE_WORD : 0) +
      (key.pattern === undefined ? 0 : PATTERN);
  });
  return { texts, keys: queries.map(({ key }) => key.text), codes: ways, textSets: among };
}

await serveSandbox("key_matcher_child", {
  run(value, _bytes, host) {
    for (const findings of runKeyJob(value as KeyJob)) host.send("found", findings);
    return {};
  },
});
