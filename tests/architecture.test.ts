/** docs/architecture.md, compared with the code. */
import { dirname, join, relative, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname!, "..");
const read = (path: string) => Deno.readTextFile(join(ROOT, path));
const page = await read("docs/architecture.md");

/** A path from the root, in code marks. */
const PATH = /`((?:build|docs|middleware|routes|services|static|tests)\/[\w./-]*|(?:main|build)\.ts)`/g;

/** Returns the text below a heading, up to the next one of its level. */
function findSection(heading: string): string {
  const [, section] = page.split(`\n## ${heading}\n`);
  if (section === undefined) throw new Error(`docs/architecture.md has no section "${heading}"`);
  return section.split(/\n## /)[0]!;
}

/** Returns the files of a numbered list, in order. */
function listFiles(section: string): string[] {
  const items = section.match(/^\d+\. .*(?:\n +\S.*)*/gm) ?? [];
  return items.flatMap((item) => [...item.matchAll(PATH)].map(([, path]) => path!)).filter((path) =>
    !path.endsWith("/")
  );
}

/** Returns the files that a file imports, also for types and on demand. */
async function findImports(file: string): Promise<string[]> {
  const paths = (await read(file)).matchAll(/(?:from|import\(|import)\s*["'](\.[^"']+)["']/g);
  return [...paths].map(([, path]) => relative(ROOT, resolve(ROOT, dirname(file), path!)));
}

test("every path exists", async () => {
  const missing: string[] = [];
  const paths = [...page.matchAll(PATH)].map(([, path]) => path!);
  for (const path of paths) {
    if (await Deno.stat(join(ROOT, path)).catch(() => undefined) === undefined) missing.push(path);
  }
  expect(missing).toEqual([]);
  expect(paths.length).toBeGreaterThan(50);
});

test.each(["The life of one reply", "The life of a job"])(
  'in "%s", every file imports an earlier one of the list or is imported by it',
  async (heading) => {
    const files = listFiles(findSection(heading));
    expect(files.length).toBeGreaterThan(1);
    expect(new Set(files).size).toBe(files.length);
    const imports = new Map(await Promise.all(files.map(async (file) => [file, await findImports(file)] as const)));
    const alone = files.slice(1).filter((file, i) => {
      const earlier = files.slice(0, i + 1);
      return !earlier.some((other) => imports.get(other)!.includes(file) || imports.get(file)!.includes(other));
    });
    expect(alone).toEqual([]);
  },
);

test("the request chain is in the order of the code", async () => {
  const section = findSection("The request chain");
  const [, chain] = section.match(new RegExp(PATH.source))!;
  const used = [...(await read(chain!)).matchAll(/\.use\((?:"[^"]*", |gated\()?(\w+)\(/g)].map(([, name]) => name!);
  const links = listFiles(section).map((link) => link.replace(/^middleware\/|\.ts$/g, ""));
  expect(links.map((link) => link.replace(/_\w/g, (part) => part[1]!.toUpperCase()))).toEqual(used);
});

test("folders import what the table says", async () => {
  const [, rules] = /const FOLDERS[^=]*= (\{.*?\n\});/s.exec(await read("tests/import_graph.test.ts"))!;
  const expected = new Function(`return ${rules}`)() as Record<string, string[]>;
  const rows = findSection("Import directions").matchAll(/^\| `services\/(\w+)\/` +\| (.*?) +\|$/gm);
  const table = Object.fromEntries([...rows].map(([, folder, others]) => [folder, others!.match(/\w+/g) ?? []]));
  const sorted = (folders: Record<string, string[]>) =>
    Object.fromEntries(Object.entries(folders).map(([folder, others]) => [folder, [...others].sort()]));
  expect(sorted(table)).toEqual(sorted(expected));
});

test("a test of services, routes or middleware is named after its source, or its source and a subject", async () => {
  const files = await Array.fromAsync(listFilesBelow("tests"));
  const sources = new Set(await Array.fromAsync(listFilesBelow("."), (path) => path.replace(/\.ts$/, "")));
  const tests = files.filter((path) => /^tests\/(services|routes|middleware)\/.*\.test\.ts$/.test(path));
  const strangers = tests.filter((path) => {
    const mirrored = path.slice("tests/".length, -".test.ts".length);
    // services/mcp/mcp_http → services/mcp/mcp; routes/chat/preview → routes/chat
    const words = mirrored.split(/(?=[_/])/);
    return !words.some((_, i) => {
      const source = words.slice(0, i + 1).join("");
      return sources.has(source) && (source.startsWith("routes/") || !mirrored.slice(source.length).includes("/"));
    });
  });
  expect(strangers).toEqual([]);
  expect(tests.length).toBeGreaterThan(150);
});

/** Yields the paths of all files below a folder from the root, without those of packages and builds. */
async function* listFilesBelow(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(join(ROOT, folder))) {
    const path = folder === "." ? name : `${folder}/${name}`;
    if (!isDirectory) yield path;
    else if (!["node_modules", ".git", "dist"].includes(name)) yield* listFilesBelow(path);
  }
}
