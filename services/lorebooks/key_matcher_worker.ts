/** The Worker that tries patterns on texts. It answers each as it goes, so that key_matcher.ts sees where it stands still. */
import type { KeyQuery } from "./key_matcher.ts";
import { compiled, holdsPlain, type KeyFinding, ScanText } from "./scan_keys.ts";

/** What the serving thread sends. */
export interface KeyJob {
  texts: string[];
  queries: KeyQuery[];
}

/** What it gets back: that the work began, then the answers in order. */
export type KeyNews = { kind: "begun" } | { kind: "found"; findings: KeyFinding[] };

/** Plain keys answered together. */
const BATCH = 500;

function* newsOf({ texts, queries }: KeyJob): Generator<KeyNews> {
  yield { kind: "begun" };
  const scanned = texts.map((text) => new ScanText(text));
  let findings: KeyFinding[] = [];
  for (const { key, texts: within } of queries) {
    if (key.pattern !== undefined && findings.length > 0) {
      yield { kind: "found", findings };
      findings = [];
    }
    findings.push(answerTo(key, within.map((place) => scanned[place]!)));
    if (key.pattern !== undefined || findings.length >= BATCH) {
      yield { kind: "found", findings };
      findings = [];
    }
  }
  if (findings.length > 0) yield { kind: "found", findings };
}

function answerTo(key: KeyQuery["key"], texts: ScanText[]): KeyFinding {
  if (key.pattern === undefined) return texts.some((text) => holdsPlain(text, key)) ? "hit" : "miss";
  const pattern = compiled(key.pattern);
  if (pattern === undefined) return "invalid";
  return texts.some((text) => pattern.test(text.plain)) ? "hit" : "miss";
}

// A page has a window and a Worker has not: importing this file outside a Worker does nothing.
if ("DedicatedWorkerGlobalScope" in self) {
  self.onmessage = ({ data }: MessageEvent<KeyJob>) => {
    for (const news of newsOf(data)) self.postMessage(news);
  };
}
