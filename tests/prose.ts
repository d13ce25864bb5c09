/**
 * Finds words that plain English rarely needs, in README, CHANGELOG, docs/ and the English texts of the page:
 * `deno task prose` prints each with its place, and the hits per 1,000 words of each file. Ends with 1 above a limit.
 */
import { relative, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname!, "..");

/** What to look for. Each has plainer words: "stored" for "kept", "the server isn't running" for "there is no server". */
const SUSPICIOUS = [
  /\bst(?:ands?|ood)\b(?! for\b)/, // "stands for" is how one explains a placeholder
  /\bt(?:ells|old)\b/,
  /\bbeside\b/,
  /\bmeanwhile\b/,
  /\b(?:what|who|which)ever\b/,
  /\bnobody\b/,
  /\b(?:the|a|its|each|every) begin\b/,
  /\b(?:is|are) (?:no\b(?! longer\b)|none\b)/,
  /\bc(?:omes?|ame|oming) in\b/,
  /\blet(?:s|ting)? (?:\w+ ){0,3}in\b/,
  /\bgiven\b/,
  /\bkept\b/,
  /\bl(?:ies|ay)\b/,
  /\brooms?\b/,
  /\bthings?\b/,
  /\bof (?:its|their) own\b/,
  /\bat hand\b/,
].map(({ source }) => new RegExp(source, "giu"));

/** Phrases in which such a word is the right one. */
const ALLOWED = [
  /\bliving room\b/giu,
];

/** One suspicious word at its place. */
export interface Hit {
  line: number;
  word: string;
}

/** What was found in one text. */
export interface Findings {
  hits: Hit[];
  words: number;
}

/** Replaces matches by spaces, so that lines stay where they are. */
const blank = (text: string, pattern: RegExp) => text.replace(pattern, (match) => match.replace(/[^\n]/g, " "));

/** Returns the prose of a Markdown page: without code, addresses, HTML and front matter; lines keep their numbers. */
export function markdownProse(text: string): string {
  const patterns = [/^---\n.*?^---$/ms, /^ *```.*?^ *```$/gms, /<!--.*?-->/gs, /`[^`\n]*`/g, /\]\([^)]*\)/g];
  return [...patterns, /<[^>\n]+>/g, /\bhttps?:\S+/g].reduce(blank, text);
}

/** Returns the text inside the string literals of a TypeScript file, without placeholders; lines keep their numbers. */
export function literalProse(source: string): string {
  const code = [/\/\*.*?\*\//gs, /^import .*$/gm, /(?<=\s)\/\/.*$/gm].reduce(blank, source);
  let prose = "", end = 0;
  for (const { 0: literal, index } of code.matchAll(/"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/gs)) {
    prose += code.slice(end, index).replace(/[^\n]/g, " ");
    prose += literal.replace(/\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)?\}/gs, (match) => match.replace(/[^\n]/g, " "));
    end = index + literal.length;
  }
  return prose;
}

/** Finds the suspicious words of a prose and counts its words. */
export function findSuspicious(prose: string): Findings {
  const checked = ALLOWED.reduce(blank, prose);
  const matches = SUSPICIOUS.flatMap((pattern) => [...checked.matchAll(pattern)]).sort((a, b) => a.index - b.index);
  const hits = matches.map(({ 0: word, index }) => ({ line: checked.slice(0, index).split("\n").length, word }));
  return { hits, words: prose.match(/\p{L}[\p{L}\p{N}'’-]*/gu)?.length ?? 0 };
}

/** Returns the hits per 1,000 words; 0 where there are no words. */
export function rateOf(findings: readonly Findings[]): number {
  const words = findings.reduce((sum, { words }) => sum + words, 0);
  return words === 0 ? 0 : 1000 * findings.reduce((sum, { hits }) => sum + hits.length, 0) / words;
}

/** What is checked, with the maximum of hits per 1,000 words in each area. */
const AREAS: { path: string; limit: number }[] = [
  { path: "README.md", limit: 3 },
  { path: "CHANGELOG.md", limit: 3 },
  { path: "CONTRIBUTING.md", limit: 3 },
  { path: "docs", limit: 4 },
  { path: "static/src/texts/en", limit: 1 },
];
const TOTAL_LIMIT = 3;

async function findingsIn(path: string): Promise<[path: string, findings: Findings][]> {
  if ((await Deno.stat(path)).isDirectory) {
    const names = (await Array.fromAsync(Deno.readDir(path))).map(({ name }) => name).sort();
    return (await Promise.all(names.map((name) => findingsIn(`${path}/${name}`)))).flat();
  }
  const read = path.endsWith(".md") ? markdownProse : path.endsWith(".ts") ? literalProse : undefined;
  return read ? [[path, findSuspicious(read(await Deno.readTextFile(path)))]] : [];
}

if (import.meta.main) {
  const all: Findings[] = [];
  const exceeded: string[] = [];
  const check = (name: string, findings: Findings[], limit: number) => {
    const rate = rateOf(findings);
    console.log(`${name}: ${rate.toFixed(1)} per 1,000 words, limit ${limit}`);
    if (rate > limit) exceeded.push(name);
  };
  for (const { path, limit } of AREAS) {
    const found = await findingsIn(resolve(ROOT, path));
    for (const [file, findings] of found) {
      for (const { line, word } of findings.hits) console.log(`${relative(ROOT, file)}:${line}: ${word}`);
      if (findings.hits.length > 0) {
        console.log(`  ${relative(ROOT, file)}: ${rateOf([findings]).toFixed(1)} per 1,000 words`);
      }
      all.push(findings);
    }
    check(path, found.map(([, findings]) => findings), limit);
  }
  check("total", all, TOTAL_LIMIT);
  if (exceeded.length > 0) console.error(`Above the limit: ${exceeded.join(", ")}. Say it in plainer words.`);
  Deno.exit(exceeded.length > 0 ? 1 : 0);
}
