/** docs/security-cases.md: every case with the tests that name it, out of the tests themselves, and how each one went. */
import { NOT_BUILT_YET, SECURITY_CASES } from "./security_cases.ts";
import type { Result } from "./security_results.ts";

const TESTS = new URL("./", import.meta.url);
/** A title, of a test or of a row of one, that begins with ids. */
const TITLE = /[([,]\s*(["'`])((?:[A-Z]\d\d[ ,]+)+)((?:(?!\1)[^\\\n]|\\.)*)\1/g;

/** A test that names cases. */
export interface NamedTest {
  /** Path from the root of the repository. */
  file: string;
  /** As they stand before the title: `"W01 W03"`. */
  ids: string;
  /** What follows the ids, with its placeholders. */
  title: string;
}

/** What is known of how tests went, by `resultKey`. */
export type Results = ReadonlyMap<string, Result>;

/** Gives the tests by the ids that their titles begin with. */
export async function testsByCase(): Promise<Map<string, NamedTest[]>> {
  const found = new Map<string, NamedTest[]>();
  for (const file of (await testFiles("")).sort()) {
    const text = await Deno.readTextFile(new URL(file, TESTS));
    for (const [, , ids, title] of text.matchAll(TITLE)) {
      const named = { file: `tests/${file}`, ids: ids!.trim(), title: title!.replace(/\\(.)/g, "$1") };
      for (const [id] of ids!.matchAll(/[A-Z]\d\d/g)) found.set(id, [...found.get(id) ?? [], named]);
    }
  }
  return found;
}

/**
 * Tells what is wrong between cases and tests.
 *
 * @returns A sentence each: a case without a test, one that is built although it is listed as not, an id that is none.
 */
export function problemsOf(tests: ReadonlyMap<string, unknown>, notBuiltYet = NOT_BUILT_YET): string[] {
  const ids = SECURITY_CASES.flatMap(([, cases]) => cases.map(([id]) => id));
  return [
    ...ids.filter((id) => !tests.has(id) && !notBuiltYet.includes(id)).map((id) => `${id} has no test`),
    ...notBuiltYet.filter((id) => tests.has(id)).map((id) => `${id} has a test and is listed as not built yet`),
    ...[...tests.keys(), ...notBuiltYet].filter((id) => !ids.includes(id)).map((id) => `${id} is no case`),
    ...ids.filter((id, i) => ids.indexOf(id) !== i).map((id) => `${id} is there twice`),
  ];
}

/** Gives a sentence for every test of a case that went as said. */
export function withResult(tests: ReadonlyMap<string, NamedTest[]>, results: Results, wanted: Result): string[] {
  return [...tests].flatMap(([id, named]) =>
    named.filter((test) => (results.get(resultKey(test)) ?? "not run") === wanted)
      .map(({ file, title }) => `${id}: "${title}" in ${file} ${wanted === "failed" ? "failed" : "was not run"}`)
  );
}

/** Gives the page. */
export function securityCasesPage(tests: ReadonlyMap<string, NamedTest[]>, results: Results): string {
  const lines = [
    "# Security and fault cases",
    "",
    "Made by `deno task docs` from the tests, and with `--results REPORT…` from vitest's reports of their runs, as `.ci/run`",
    "does at its end. It fails when a case has no test, or when one that a case has failed. The result is that of the last run",
    "that was recorded, with the number of rows or tests where there are several; tests under `tests/real` need the real",
    "parts that `.ci/run` installs.",
  ];
  for (const [heading, cases] of SECURITY_CASES) {
    lines.push("", `## ${heading}`, "", "| case | what has to hold | test | result |", "|---|---|---|---|");
    for (const [id, title] of cases) {
      const named = tests.get(id) ?? [];
      if (named.length === 0) lines.push(`| ${id} | ${title} | not built yet | |`);
      named.forEach((test, i) => {
        const [first, what] = i === 0 ? [id, title] : ["", ""];
        lines.push(`| ${first} | ${what} | ${testCell(test)} | ${results.get(resultKey(test)) ?? "not run"} |`);
      });
    }
  }
  return `${lines.join("\n")}\n`;
}

/** Reads the results that a page tells. */
export function resultsOn(page: string): Map<string, Result> {
  const cells = page.split("\n").map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()));
  return new Map(cells.filter(({ length }) => length === 6).map(([, , , test, result]) => [test!, result as Result]));
}

/** What stands for a test: its cell, in which its title and its file are. */
export function resultKey(test: NamedTest): string {
  return testCell(test);
}

function testCell({ file, title }: NamedTest): string {
  return `${cell(title)} ([${shortName(file)}](../${file}))`;
}

function cell(text: string): string {
  return text.replaceAll("\\", "").replaceAll("|", "\\|").replaceAll("<", "&lt;");
}

function shortName(file: string): string {
  return file.slice(file.lastIndexOf("/") + 1, -".test.ts".length);
}

async function testFiles(folder: string): Promise<string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder || ".", TESTS))) {
    if (isDirectory) files.push(...await testFiles(`${folder}${name}/`));
    // The test of this page itself speaks of cases and tests none.
    else if (name.endsWith(".test.ts") && name !== "security_cases.test.ts") files.push(folder + name);
  }
  return files;
}
