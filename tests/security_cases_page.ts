/** docs/security-cases.md: every case with the tests that have its tag, read from the sources of the tests. */
import { sampleTitle } from "./helpers/files/sample.ts";
import { AWAITED_FEATURES, type AwaitedFeature, SECURITY_CASES } from "./security_cases.ts";

const ROOT = new URL("../", import.meta.url);
const TESTS = new URL("tests/", ROOT);
/** The title of a test or a group, and its tags. */
const TAGGED = /\(\s*(["'`])((?:(?!\1)[^\\\n]|\\.)*)\1,\s*\{\s*tags: \[((?:\s*"[A-Z]\d\d",?)+)\s*\]/g;
/** A number at the top of a test file, which titles there may name: `const STATES = 300;` or `= sample(40, 300);`. */
const NUMBER = /^const ([A-Z][A-Z_\d]*) = (?:sample\(([\d_]+), ([\d_]+)\)|([\d_]+));/gm;
/** What a title holds in place of a value: `%s` of rows, `$name` of rows that are objects, `${…}` of a template. */
const PLACEHOLDER = /%[sdifjoOc#%]|\$\{[^}]*\}|\$[A-Za-z_][\w.]*/g;

/** A test that has the tag of a case. */
export interface NamedTest {
  /** Path from the root of the repository. */
  file: string;
  /** Its tags: `["W01", "W03"]`. */
  ids: string[];
  /** Numbers of templates are filled in, placeholders of rows are not. */
  title: string;
}

/**
 * Finds the tests of each case by their tags.
 *
 * @param isLong Fills in the numbers of a run with `LONG_TESTS=1`.
 */
export async function testsByCase({ isLong = false } = {}): Promise<Map<string, NamedTest[]>> {
  const found = new Map<string, NamedTest[]>();
  for (const file of (await filesBelow(TESTS)).filter(isTestOfCases).sort()) {
    const text = await Deno.readTextFile(new URL(file, TESTS));
    for (const named of namedTests(`tests/${file}`, text, isLong)) {
      for (const id of named.ids) found.set(id, [...found.get(id) ?? [], named]);
    }
  }
  return found;
}

/** Finds the tests in one file that have the tag of a case. */
export function namedTests(file: string, text: string, isLong: boolean): NamedTest[] {
  const numbers = new Map(
    [...text.matchAll(NUMBER)].map(([, name, usual, all, number]) => {
      if (number !== undefined) return [name!, String(plainNumber(number))];
      return [name!, sampleTitle(plainNumber(isLong ? all! : usual!), plainNumber(all!))];
    }),
  );
  return [...text.matchAll(TAGGED)].map(([, quote, title, tags]) => {
    const filled = quote === "`" ? title!.replace(/\$\{(\w+)\}/g, (whole, name) => numbers.get(name) ?? whole) : title!;
    const ids = [...tags!.matchAll(/"([^"]+)"/g)].map(([, id]) => id!);
    return { file, ids, title: filled.replace(/\\(.)/g, "$1") };
  });
}

/**
 * Compares cases and tests.
 *
 * @param sources Paths of the product's sources and names of its packages.
 * @returns A sentence for each problem: a case without a test, an id that is not a case, a case that no longer has to wait
 *   for its feature, a title with an expression that can't be filled in.
 */
export function problemsOf(
  tests: ReadonlyMap<string, NamedTest[]>,
  sources: readonly string[],
  awaited: Readonly<Record<string, AwaitedFeature>> = AWAITED_FEATURES,
): string[] {
  const ids = SECURITY_CASES.flatMap(([, cases]) => cases.map(([id]) => id));
  const waiting = Object.entries(awaited);
  return [
    ...ids.filter((id) => !tests.has(id) && awaited[id] === undefined).map((id) => `${id} has no test`),
    ...waiting.filter(([id]) => tests.has(id)).map(([id]) =>
      `${id} has a test, and is listed as waiting for a feature`
    ),
    ...waiting.flatMap(([id, { feature, sign }]) => {
      const found = sources.find((path) => sign.test(path));
      return found === undefined ? [] : [`${id} waits for ${feature}, but there is "${found}"`];
    }),
    ...[...tests.keys(), ...Object.keys(awaited)].filter((id) => !ids.includes(id)).map((id) => `${id} is not a case`),
    ...ids.filter((id, i) => ids.indexOf(id) !== i).map((id) => `${id} is listed twice`),
    ...[...new Set([...tests.values()].flat())].filter(({ title }) => title.includes("${")).map(({ file, title }) =>
      `"${title}" in ${file}: the page can't fill in this title; use a number at the top of the file`
    ),
  ];
}

/** Lists what `problemsOf` compares the awaited features with. */
export async function productSources(): Promise<string[]> {
  const folders = ["services", "routes", "static/src"];
  const paths = await Promise.all(folders.map(async (folder) => {
    const files = await filesBelow(new URL(`${folder}/`, ROOT));
    return files.map((path) => `${folder}/${path}`);
  }));
  const { imports } = JSON.parse(await Deno.readTextFile(new URL("deno.json", ROOT)));
  return [...Object.keys(imports), ...paths.flat()];
}

/** Writes the page. */
export function securityCasesPage(tests: ReadonlyMap<string, NamedTest[]>): string {
  const lines = [
    "# Security and fault cases",
    "",
    "Attacks and faults that Parlor is tested against. `deno task docs` generates this page from the tests; `.ci/run` runs all",
    "of them, prints the results, and fails if a case has no passing test.",
    "",
    '"40 of 300" means that `.ci/run` takes a sample of 40; `LONG_TESTS=1` runs all 300. "…" is a value that differs between',
    "the rows of a test. Tests in `tests/real` need the real parts that `.ci/run` installs.",
  ];
  for (const [heading, cases] of SECURITY_CASES) {
    lines.push("", `## ${heading}`, "", "| Case | Requirement | Test |", "|---|---|---|");
    for (const [id, title] of cases) {
      const named = tests.get(id) ?? [];
      const awaited = AWAITED_FEATURES[id];
      if (named.length === 0) {
        lines.push(
          `| ${id} | ${title} | ${awaited ? `not applicable: Parlor has no ${awaited.feature}` : "none"} |`,
        );
      }
      named.forEach((test, i) => {
        const [first, what] = i === 0 ? [id, title] : ["", ""];
        lines.push(`| ${first} | ${what} | ${testCell(test)} |`);
      });
    }
  }
  return `${lines.join("\n")}\n`;
}

/** Makes an expression that matches the titles vitest reports for a test: rows of `test.each` fill in its placeholders. */
export function titlePattern({ title }: NamedTest): RegExp {
  return new RegExp(`^${title.split(PLACEHOLDER).map(escaped).join("[^]*")}$`);
}

function testCell({ file, title }: NamedTest): string {
  const shown = title.replace(PLACEHOLDER, "…").replaceAll("\\", "").replaceAll("|", "\\|").replaceAll("<", "&lt;");
  return `${shown} ([${shortName(file)}](../${file}))`;
}

function shortName(file: string): string {
  return file.slice(file.lastIndexOf("/") + 1, -".test.ts".length);
}

/** The test of this page mentions cases but tests none. */
function isTestOfCases(path: string): boolean {
  return path.endsWith(".test.ts") && path !== "security_cases.test.ts";
}

function plainNumber(literal: string): number {
  return Number(literal.replaceAll("_", ""));
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/** Lists the files in a folder and below, by their paths from there. */
async function filesBelow(folder: URL): Promise<string[]> {
  const paths: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(folder)) {
    if (!isDirectory) paths.push(name);
    else for (const path of await filesBelow(new URL(`${name}/`, folder))) paths.push(`${name}/${path}`);
  }
  return paths;
}
