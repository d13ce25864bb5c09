/** Matches keys in the sandbox, and reports results as they are found. */
import { compilePattern, containsKey, type KeyFinding, parsePattern, type ScanKey, ScanText } from "./scan_keys.ts";
import type { KeyQuery } from "./key_matcher.ts";
import { serveSandbox } from "../platform/sandbox/child.ts";

/** Maximum number of results per message. */
const BATCH = 500;
/** Results wait at most this long for further ones. A message takes as long as matching a few patterns. */
const BATCH_MS = 20;

/** Yields results in order. */
function* runKeyJob({ texts, keys, codes, textSets, isOneByOne }: KeyJob): Generator<KeyFinding[]> {
  const scanned = texts.map((text) => new ScanText(text));
  let findings: KeyFinding[] = [];
  let sentAtMs = performance.now();
  for (const [index, text] of keys.entries()) {
    const way = codes[index]!;
    const isPattern = (way & PATTERN) > 0;
    const isDue = isPattern && (isOneByOne || performance.now() - sentAtMs > BATCH_MS);
    if (findings.length >= BATCH || (findings.length > 0 && isDue)) {
      yield findings;
      findings = [];
      sentAtMs = performance.now();
    }
    const within = textSets[Math.floor(way / FLAG_VALUES)]!.map((at) => scanned[at]!);
    findings.push(
      isPattern ? matchPattern(within, text) : matchPlain(within, {
        text,
        isCaseSensitive: (way & CASE_SENSITIVE) > 0,
        isWholeWord: (way & WHOLE_WORD) > 0,
      }),
    );
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
  /** Reports each result before the next pattern, so that it's known which one stalls. */
  isOneByOne: boolean;
}

/** Flags of a key. */
const CASE_SENSITIVE = 1;
const WHOLE_WORD = 2;
const PATTERN = 4;
/** Number of flag combinations. */
const FLAG_VALUES = 8;

/** Packs queries into a job. */
export function packKeyJob(texts: string[], queries: readonly KeyQuery[], isOneByOne: boolean): KeyJob {
  const sets = new Map<string, number>();
  const among: number[][] = [];
  const ways = queries.map(({ key, texts: within }) => {
    const name = within.join();
    let set = sets.get(name);
    if (set === undefined) sets.set(name, set = among.push(within) - 1);
    return set * FLAG_VALUES + (key.isCaseSensitive ? CASE_SENSITIVE : 0) + (key.isWholeWord ? WHOLE_WORD : 0) +
      (key.pattern === undefined ? 0 : PATTERN);
  });
  return { texts, keys: queries.map(({ key }) => key.text), codes: ways, textSets: among, isOneByOne };
}

await serveSandbox("key_matcher_child", {
  run(value, _bytes, host) {
    for (const findings of runKeyJob(value as KeyJob)) host.send("found", findings);
    return {};
  },
});
