/**
 * Every export of server and page is used by another file. A type may also be exported because another export of its
 * file mentions it: what a function takes or returns is part of its interface.
 */
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname!, "..");
/** Folders and files whose exports are checked. The files of tests/ and build/ count as users only. */
const CHECKED = /^(routes|middleware|services|static\/src)\//;

async function* listSources(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(join(ROOT, folder))) {
    const path = folder === "." ? name : `${folder}/${name}`;
    if (isDirectory) yield* listSources(path);
    else if (/\.tsx?$/.test(name)) yield path;
  }
}

/** The names of a list in braces, as the imported module calls them: `a`, `type b`, `c as d`. */
function parseNames(list: string): string[] {
  return list.split(",").map((name) => name.trim().replace(/^type /, "").split(" as ")[0]!).filter((name) =>
    name !== ""
  );
}

/** Returns the names that a module exports. */
function findExports(text: string): string[] {
  const declared = text.matchAll(
    /^export (?:declare |abstract |async )*(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm,
  );
  const listed = text.matchAll(/^export (?:type )?\{([^}]*)\}/gm);
  return [
    ...[...declared].map(([, name]) => name!),
    ...[...listed].flatMap(([, names]) => names!.split(",").map((name) => name.trim().split(/ as |^type /).at(-1)!)),
  ].filter((name) => name !== "");
}

/**
 * Returns what a module uses of others, by their paths from the root. Of a module imported as a whole that is what is
 * read from its name; of one imported on demand, every word of the file, since the name can be read anywhere.
 */
function findUses(path: string, text: string): [module: string, name: string][] {
  const toModule = (specifier: string) => relative(ROOT, resolve(ROOT, dirname(path), specifier));
  const uses: [string, string][] = [];
  for (const [, clause = "", specifier = ""] of text.matchAll(/^(?:import|export) ([^;"]*?)\bfrom "(\.[^"]+)"/gm)) {
    const module = toModule(specifier);
    for (const name of parseNames(/\{([^}]*)\}/.exec(clause)?.[1] ?? "")) uses.push([module, name]);
    const whole = /\* as (\w+)/.exec(clause)?.[1];
    if (whole === undefined) continue;
    for (const [, name = ""] of text.matchAll(new RegExp(`\\b${whole}\\s*\\.(\\w+)`, "g"))) uses.push([module, name]);
  }
  const words = new Set(text.match(/\w+/g));
  for (const [, specifier = ""] of text.matchAll(/\bimport\(\s*"(\.[^"]+)"/g)) {
    for (const name of words) uses.push([toModule(specifier), name]);
  }
  return uses;
}

/** Returns the types that an exported declaration of the file mentions, besides the one that declares them. */
function findMentionedTypes(text: string): Set<string> {
  // Top-level declarations begin at the start of a line.
  const declarations = text.split(/^(?=(?:export |(?:async )?function |const |let |class |interface |type |enum ))/m);
  const mentioned = new Set<string>();
  for (const declaration of declarations.filter((each) => each.startsWith("export "))) {
    const [, own] = /^export (?:interface|type|class) (\w+)/.exec(declaration) ?? [];
    for (const [name] of declaration.matchAll(/\w+/g)) if (name !== own) mentioned.add(name);
  }
  return new Set([...text.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => name!)).intersection(
    mentioned,
  );
}

/** Returns `path: name` of every export that no other file uses. */
function findUnused(files: ReadonlyMap<string, string>, isChecked: (path: string) => boolean): string[] {
  const used = new Set([...files].flatMap(([path, text]) => findUses(path, text).map((use) => use.join(": "))));
  return [...files].filter(([path]) => isChecked(path)).flatMap(([path, text]) =>
    findExports(text).filter((name) => !used.has(`${path}: ${name}`) && !findMentionedTypes(text).has(name))
      .map((name) => `${path}: ${name}`)
  );
}

test("every export is used by another file", async () => {
  const files = new Map<string, string>();
  for (const folder of ["build", "middleware", "routes", "services", "static/src", "tests"]) {
    for await (const path of listSources(folder)) files.set(path, await Deno.readTextFile(join(ROOT, path)));
  }
  for (const path of ["main.ts", "build.ts"]) files.set(path, await Deno.readTextFile(join(ROOT, path)));
  expect([...files.keys()].filter((path) => CHECKED.test(path)).length).toBeGreaterThan(500);
  expect(findUnused(files, (path) => CHECKED.test(path))).toEqual([]);
});

test("finds exports that are used in no way", () => {
  const files = new Map([
    [
      "services/a.ts",
      "export const named = 1;\nexport function member() {}\nexport class Later {}\nexport const unused = 2;\n",
    ],
    [
      "services/types.ts",
      "export interface Options {}\nexport type Unused = 1;\nexport function open(options: Options) {}\n",
    ],
    ["services/list.ts", 'export { open, type Options as Listed } from "./types.ts";\n'],
    ["services/b.ts", 'import { named as other } from "./a.ts";\nimport * as a from "./a.ts";\na.member(other);\n'],
    ["tests/c.test.ts", 'const { Later } = await import("../services/a.ts");\n'],
  ]);
  expect(findUnused(files, (path) => CHECKED.test(path))).toEqual([
    "services/a.ts: unused",
    "services/types.ts: Unused",
    "services/list.ts: open",
    "services/list.ts: Listed",
  ]);
});
