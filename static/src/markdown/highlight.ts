/** Syntax highlighting. The highlighter and each language load when first needed. */
import type { Emitter, HLJSApi, LanguageFn } from "highlight.js";

/** A span of code. `scope` is a scope of the highlighter: `keyword`, `string`, `title`, … */
export type CodePiece = string | { scope: string; pieces: CodePiece[] };

/** Longer code stays plain, since parsing it takes longer than a frame. In UTF-16 code units. */
const MAX_LENGTH = 40_000;

/** Deeper scopes get no color of their own, since the view recurses through the spans. */
const MAX_DEPTH = 50;

/** Code with more spans stays plain, since one element each makes the page slow. */
const MAX_PIECES = 10_000;

type Loader = () => Promise<{ default: LanguageFn }>;

/** The module of each language. The bundler creates one file for each. */
const LANGUAGES: Record<string, Loader> = {
  bash: () => import("highlight.js/lib/languages/bash"),
  c: () => import("highlight.js/lib/languages/c"),
  clojure: () => import("highlight.js/lib/languages/clojure"),
  cpp: () => import("highlight.js/lib/languages/cpp"),
  csharp: () => import("highlight.js/lib/languages/csharp"),
  css: () => import("highlight.js/lib/languages/css"),
  dart: () => import("highlight.js/lib/languages/dart"),
  diff: () => import("highlight.js/lib/languages/diff"),
  dockerfile: () => import("highlight.js/lib/languages/dockerfile"),
  elixir: () => import("highlight.js/lib/languages/elixir"),
  go: () => import("highlight.js/lib/languages/go"),
  graphql: () => import("highlight.js/lib/languages/graphql"),
  haskell: () => import("highlight.js/lib/languages/haskell"),
  ini: () => import("highlight.js/lib/languages/ini"),
  java: () => import("highlight.js/lib/languages/java"),
  javascript: () => import("highlight.js/lib/languages/javascript"),
  json: () => import("highlight.js/lib/languages/json"),
  julia: () => import("highlight.js/lib/languages/julia"),
  kotlin: () => import("highlight.js/lib/languages/kotlin"),
  latex: () => import("highlight.js/lib/languages/latex"),
  lua: () => import("highlight.js/lib/languages/lua"),
  makefile: () => import("highlight.js/lib/languages/makefile"),
  markdown: () => import("highlight.js/lib/languages/markdown"),
  nix: () => import("highlight.js/lib/languages/nix"),
  perl: () => import("highlight.js/lib/languages/perl"),
  php: () => import("highlight.js/lib/languages/php"),
  powershell: () => import("highlight.js/lib/languages/powershell"),
  python: () => import("highlight.js/lib/languages/python"),
  r: () => import("highlight.js/lib/languages/r"),
  ruby: () => import("highlight.js/lib/languages/ruby"),
  rust: () => import("highlight.js/lib/languages/rust"),
  scala: () => import("highlight.js/lib/languages/scala"),
  scss: () => import("highlight.js/lib/languages/scss"),
  sql: () => import("highlight.js/lib/languages/sql"),
  swift: () => import("highlight.js/lib/languages/swift"),
  typescript: () => import("highlight.js/lib/languages/typescript"),
  xml: () => import("highlight.js/lib/languages/xml"),
  yaml: () => import("highlight.js/lib/languages/yaml"),
};

/** Aliases that models write after the fence. */
const OTHER_NAMES: Record<string, string> = {
  "c#": "csharp",
  "c++": "cpp",
  cc: "cpp",
  clj: "clojure",
  console: "bash",
  cs: "csharp",
  docker: "dockerfile",
  ex: "elixir",
  golang: "go",
  gql: "graphql",
  h: "c",
  hpp: "cpp",
  hs: "haskell",
  html: "xml",
  jl: "julia",
  js: "javascript",
  json5: "json",
  jsonc: "json",
  jsx: "javascript",
  kt: "kotlin",
  make: "makefile",
  md: "markdown",
  mjs: "javascript",
  patch: "diff",
  pl: "perl",
  ps1: "powershell",
  py: "python",
  rb: "ruby",
  rs: "rust",
  sh: "bash",
  shell: "bash",
  svg: "xml",
  tex: "latex",
  toml: "ini",
  ts: "typescript",
  tsx: "typescript",
  vue: "xml",
  yml: "yaml",
  zsh: "bash",
};

let core: Promise<HLJSApi> | undefined;
const known = new Map<string, Promise<void>>();

/** True if code in this language can be highlighted. */
export function canHighlight(language: string, length: number): boolean {
  return length > 0 && length <= MAX_LENGTH && getLanguageName(language) !== undefined;
}

/**
 * Returns the spans of a code. They hold text, never HTML, so nothing needs sanitizing.
 *
 * @throws {Error} if a part of the highlighter can't be loaded; the next call tries again.
 */
export async function highlight(language: string, code: string): Promise<CodePiece[]> {
  const name = getLanguageName(language);
  if (name === undefined) return [code];
  const hljs = await loadCore();
  await loadLanguage(hljs, name);
  const { _emitter } = hljs.highlight(code, { language: name, ignoreIllegals: true });
  return _emitter instanceof PieceEmitter && _emitter.count <= MAX_PIECES ? _emitter.pieces : [code];
}

function getLanguageName(language: string): string | undefined {
  const lower = language.toLowerCase();
  const name = Object.hasOwn(OTHER_NAMES, lower) ? OTHER_NAMES[lower]! : lower;
  return Object.hasOwn(LANGUAGES, name) ? name : undefined;
}

function loadCore(): Promise<HLJSApi> {
  core ??= import("highlight.js/lib/core").then(({ default: hljs }) => {
    hljs.configure({ __emitter: PieceEmitter });
    return hljs;
  });
  core.catch(() => core = undefined);
  return core;
}

function loadLanguage(hljs: HLJSApi, name: string): Promise<void> {
  const loading = known.get(name) ?? LANGUAGES[name]!().then((part) => hljs.registerLanguage(name, part.default));
  known.set(name, loading);
  loading.catch(() => known.delete(name));
  return loading;
}

/** Collects the result of the highlighter as a tree instead of HTML. */
class PieceEmitter implements Emitter {
  readonly pieces: CodePiece[] = [];
  /** Number of scopes. */
  count = 0;
  #open: CodePiece[][] = [this.pieces];

  startScope(name: string): void {
    this.count++;
    const outer = this.#open.at(-1)!;
    const pieces: CodePiece[] = this.#open.length > MAX_DEPTH ? outer : [];
    if (pieces !== outer) outer.push({ scope: name, pieces });
    this.#open.push(pieces);
  }

  endScope(): void {
    if (this.#open.length > 1) this.#open.pop();
  }

  /** The highlighter calls both methods by two names; its types declare one. */
  openNode(name: string): void {
    this.startScope(name);
  }

  closeNode(): void {
    this.endScope();
  }

  addText(text: string): void {
    if (text !== "") this.#open.at(-1)!.push(text);
  }

  /** Code inside code, such as a script in HTML. Only languages that were requested are loaded. */
  __addSublanguage(emitter: Emitter): void {
    if (!(emitter instanceof PieceEmitter)) return;
    this.count += emitter.count;
    this.#open.at(-1)!.push(...emitter.pieces);
  }

  finalize(): void {}

  toHTML(): string {
    return "";
  }
}
