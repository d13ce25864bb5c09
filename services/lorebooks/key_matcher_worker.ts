/** The Worker that tries patterns on texts. It answers each as it goes, so that key_matcher.ts sees where it stands still. */
import { CASE_SENSITIVE, FLAGS, type KeyJob, PATTERN, WHOLE_WORD } from "./key_job.ts";
import { compiled, holdsPlain, type KeyFinding, patternOf, type ScanKey, ScanText } from "./scan_keys.ts";

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
